#include "server/observe/metrics_endpoint.h"

#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tensord::server {

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<prometheus::Exposer> exposer, std::string address)
    : exposer_(std::move(exposer)), address_(std::move(address)) {}

MetricsEndpoint::~MetricsEndpoint() = default;

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::Start(
    absl::string_view address, const std::vector<std::shared_ptr<prometheus::Collectable>>& collectables) {
  const size_t colon = address.rfind(':');
  int port = 0;
  // The HTTP library takes a list of ports with flags in one string, so nothing but an address may reach it.
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535 || address.find_first_of(",+ ") != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("--metrics takes host:port, not \"", address, "\""));
  }
  const std::string host =
      address.substr(0, colon) == "localhost" ? "127.0.0.1" : std::string(address.substr(0, colon));
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(absl::StrCat(host, ":", port));
    for (const auto& collectable : collectables) exposer->RegisterCollectable(collectable);
    const std::vector<int> ports = exposer->GetListeningPorts();
    std::string bound = absl::StrCat(host, ":", ports.empty() ? port : ports.front());
    return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(std::move(exposer), std::move(bound)));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cannot serve metrics at ", address, ": ", error.what()));
  }
}

}  // namespace tensord::server
