#ifndef TENSORD_SERVER_OBSERVE_METRICS_ENDPOINT_H_
#define TENSORD_SERVER_OBSERVE_METRICS_ENDPOINT_H_

#include <prometheus/collectable.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_server.h"

namespace tensord::server {

// Serves /metrics over HTTP from a thread of its own, as long as it lives. Thread-safe.
class MetricsEndpoint {
 public:
  struct Address {
    std::string host;  // an IPv6 address is in brackets
    int port = 0;      // 0: a free one
  };
  // INVALID_ARGUMENT for what is not one host and one port, host:port.
  static absl::StatusOr<Address> ParseAddress(absl::string_view text);

  // What ParseAddress refuses; UNAVAILABLE where the address is taken. A collectable may go before the endpoint does.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      absl::string_view address, const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables);

  // With the port that it got.
  const std::string& address() const { return server_->listener().address(); }

 private:
  explicit MetricsEndpoint(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}

  const std::unique_ptr<HttpServer> server_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_ENDPOINT_H_
