#ifndef TENSORD_SERVER_IDENTITY_IDENTITY_POLICY_H_
#define TENSORD_SERVER_IDENTITY_IDENTITY_POLICY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/config/server_config.pb.h"
#include "server/identity/identity_table.h"

namespace tensord::server {

// The credentials that callers must show, and the known callers. A value.
struct IdentityPolicy {
  // Calls without credentials are refused, except over unix sockets if those are trusted.
  bool required = false;
  bool trusts_unix_sockets = true;
  // Clients may show certificates.
  bool takes_certificates = false;
  // Null: there are no tokens, and each certificate of the client CA is the tenant "default", which may execute and
  // read.
  std::shared_ptr<const IdentityTable> table;
};

// Loads the policy of the settings `identity` and `tls`. Reads the file of callers: INVALID_ARGUMENT if it is not as it
// must be.
absl::StatusOr<IdentityPolicy> LoadIdentityPolicy(const ServerConfig& config);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_IDENTITY_POLICY_H_
