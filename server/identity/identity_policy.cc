#include "server/identity/identity_policy.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "server/config/config_file.h"

namespace tensord::server {

absl::StatusOr<IdentityPolicy> LoadIdentityPolicy(const ServerConfig& config) {
  const ServerConfig::Identity& identity = config.identity();
  IdentityPolicy policy;
  policy.takes_certificates = !config.tls().client_ca().empty();
  policy.trusts_unix_sockets = identity.trust_unix_sockets();
  if (!identity.file().empty()) {
    ASSIGN_OR_RETURN(IdentityTable table, IdentityTable::Load(identity.file()));
    policy.table = std::make_shared<const IdentityTable>(std::move(table));
  }
  policy.required = RequiresIdentity(config);
  return policy;
}

}  // namespace tensord::server
