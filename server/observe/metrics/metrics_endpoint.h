#ifndef TENSORD_SERVER_OBSERVE_METRICS_METRICS_ENDPOINT_H_
#define TENSORD_SERVER_OBSERVE_METRICS_METRICS_ENDPOINT_H_

#include <prometheus/collectable.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/http/http_server.h"

namespace tensord::server {

// Serves monitoring over HTTP, from a thread of its own, as long as it lives: /metrics; /healthz, 200 as long as the
// server works; and /readyz, 200 if it is to be given calls and 503 if not. Thread-safe.
class MetricsEndpoint {
 public:
  struct Address {
    std::string host;  // an IPv6 address is in brackets
    int port = 0;      // 0: a free one
  };
  // Functions that the thread calls; the things they use must outlive the endpoint.
  struct Probes {
    std::function<void()> live = [] {};  // returns, but hangs where every call would
    std::function<bool()> is_ready = [] { return true; };
  };
  // Parses an address. INVALID_ARGUMENT for anything but one host and one port, host:port.
  static absl::StatusOr<Address> ParseAddress(absl::string_view text);

  // Starts the endpoint. Refuses as ParseAddress does; UNAVAILABLE if the address is taken. A collectable may go before
  // the endpoint does.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Start(
      absl::string_view address, const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables,
      Probes probes);

  // Returns the address with the port that it got.
  const std::string& address() const { return server_->listener().address(); }

 private:
  explicit MetricsEndpoint(std::unique_ptr<HttpServer> server) : server_(std::move(server)) {}

  const std::unique_ptr<HttpServer> server_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRICS_ENDPOINT_H_
