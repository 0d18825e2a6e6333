#include "server/identity/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <string>
#include <utility>

namespace tensord::server {
namespace {

grpc_ssl_client_certificate_request_type RequestType(const ServerConfig::Tls& settings) {
  if (settings.client_ca().empty()) return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  return settings.require_client_certificate() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                               : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
}

// gRPC's C++ interface has no credentials that ask for certificates; its C interface has.
class StoreCredentials final : public grpc::ServerCredentials {
 public:
  StoreCredentials(std::shared_ptr<const TlsStore> store, grpc_ssl_client_certificate_request_type request)
      : store_(std::move(store)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &Fetch, this))) {}
  ~StoreCredentials() override { grpc_server_credentials_release(credentials_); }

  // Calls are authenticated where they begin, server/identity/authenticator.h.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls it one at a time.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self, grpc_ssl_server_certificate_config** config) {
    auto* const credentials = static_cast<StoreCredentials*>(self);
    std::shared_ptr<const TlsMaterial> now = credentials->store_->material();
    if (now == credentials->last_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {now->key.c_str(), now->certificate.c_str()};
    // gRPC 1.51 ends the process where a fetcher gives no roots. Where no certificate is asked for they verify nothing.
    const std::string& roots = now->client_ca.empty() ? now->certificate : now->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    credentials->last_ = std::move(now);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::shared_ptr<const TlsStore> store_;
  std::shared_ptr<const TlsMaterial> last_;
  grpc_server_credentials* const credentials_;
};

}  // namespace

void TlsStore::Replace(TlsMaterial material) {
  auto next = std::make_shared<const TlsMaterial>(std::move(material));
  MutexLock lock(&mutex_);
  std::swap(material_, next);
}

std::shared_ptr<const TlsMaterial> TlsStore::material() const {
  MutexLock lock(&mutex_);
  return material_;
}

std::shared_ptr<grpc::ServerCredentials> MakeTlsCredentials(std::shared_ptr<const TlsStore> store,
                                                            const ServerConfig::Tls& settings) {
  return std::make_shared<StoreCredentials>(std::move(store), RequestType(settings));
}

}  // namespace tensord::server
