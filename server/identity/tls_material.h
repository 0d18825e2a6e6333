#ifndef TENSORD_SERVER_IDENTITY_TLS_MATERIAL_H_
#define TENSORD_SERVER_IDENTITY_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/server_config.pb.h"
#include "server/observe/metrics/control_metrics.h"

namespace tensord::server {

// The certificates that a server shows and trusts in TLS, in PEM, and their end. A value.
struct TlsMaterial {
  std::string certificate;  // and those between it and the root
  std::string key;
  std::string client_ca;  // empty: clients show no certificate
  absl::Time certificate_expiry;
  absl::Time client_ca_expiry = absl::InfiniteFuture();  // the first of them to end

  friend bool operator==(const TlsMaterial& a, const TlsMaterial& b) {
    return a.certificate == b.certificate && a.key == b.key && a.client_ca == b.client_ca;
  }
};

// Reads the files of the settings and checks them as TLS will. INVALID_ARGUMENT, with the path, if one cannot be read,
// is no PEM, is not valid at `now`, or if the key is open to everybody or not the certificate's. gRPC itself would end
// the process, or refuse each client without a word. Files with the content of `running` give that, whatever the time:
// a certificate that expired in use must not stand in the way of other changes.
absl::StatusOr<TlsMaterial> LoadTlsMaterial(const ServerConfig::Tls& settings, absl::Time now,
                                            const TlsMaterial* running = nullptr);

// Sets the metrics of when the certificates end.
void ShowExpiry(const TlsMaterial& material, ControlMetrics* metrics);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_TLS_MATERIAL_H_
