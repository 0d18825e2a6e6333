#ifndef TENSORD_SERVER_IDENTITY_TLS_CREDENTIALS_H_
#define TENSORD_SERVER_IDENTITY_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "engine/base/mutex.h"
#include "server/config/server_config.pb.h"
#include "server/identity/tls_material.h"

namespace tensord::server {

// The material that new connections are made with; replaced while the server runs. Thread-safe.
class TlsStore {
 public:
  explicit TlsStore(TlsMaterial material) : material_(std::make_shared<const TlsMaterial>(std::move(material))) {}

  void Replace(TlsMaterial material);
  std::shared_ptr<const TlsMaterial> material() const;

 private:
  mutable Mutex mutex_;  // held to copy a pointer
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
};

// Makes credentials for one listener; each needs its own. They ask the store at every handshake, so the next connection
// uses material that Replace brought. Clients are asked for a certificate as the settings say, and it is verified
// against the store's client CA.
std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(std::shared_ptr<const TlsStore> store,
                                                            const ServerConfig::Tls& settings);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_IDENTITY_TLS_CREDENTIALS_H_
