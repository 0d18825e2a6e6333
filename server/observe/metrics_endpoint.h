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
  // `address` is host:port, port 0 for a free one. INVALID_ARGUMENT where it is no such address, UNAVAILABLE where it
  // is taken. A collectable may go before the endpoint does.
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
