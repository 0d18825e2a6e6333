#include "server/server_addresses.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "server/connections/default_socket.h"
#include "server/connections/same_place.h"
#include "server/observe/metrics/metrics_endpoint.h"

namespace tensord::server {
namespace {

absl::StatusOr<std::vector<ListenAddress>> ParseCalls(const ServerConfig& config) {
  std::vector<ListenAddress> addresses;
  for (const std::string& text : config.listen()) {
    ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
    if (!address.is_local() && config.tls().certificate().empty() && !config.allow_insecure_listen()) {
      return absl::InvalidArgumentError(
          absl::StrCat(text,
                       " can be reached from other machines, and connections are not encrypted; set tls.certificate "
                       "and tls.key, put a TLS proxy in front, or spell it out with --allow-insecure-listen"));
    }
    addresses.push_back(std::move(address));
  }
  if (!addresses.empty()) return addresses;
  ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(DefaultSocketOfUser().address()));
  addresses.push_back(std::move(address));
  return addresses;
}

absl::StatusOr<std::optional<ListenAddress>> ParseAdmin(const std::string& text) {
  if (text.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
  if (!address.is_local()) {
    return absl::InvalidArgumentError(
        absl::StrCat("setting admin.listen is a socket or an address of this machine, not ", text));
  }
  return address;
}

absl::StatusOr<std::optional<ListenAddress>> ParseMetrics(const std::string& text) {
  if (text.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(MetricsEndpoint::Address address, MetricsEndpoint::ParseAddress(text));
  return ListenAddress{.socket_path = "", .host = std::move(address.host), .port = address.port};
}

absl::StatusOr<std::optional<ListenAddress>> ParseSharedMemory(const std::string& text) {
  if (text.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(ListenAddress address, ParseListenAddress(text));
  if (!address.is_unix()) {
    return absl::InvalidArgumentError(absl::StrCat("setting shared_memory.listen is a socket, unix:/path, not ", text));
  }
  return address;
}

struct Listener {
  absl::string_view setting;
  ListenAddress address;
};

absl::Status CheckApart(const std::vector<Listener>& listeners) {
  for (size_t i = 0; i < listeners.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Listener& a = listeners[j];
      const Listener& b = listeners[i];
      if (!IsSamePlace(a.address, b.address)) continue;
      return absl::InvalidArgumentError(absl::StrCat("setting ", a.setting, ", ", a.address.ToString(),
                                                     ", and setting ", b.setting, ", ", b.address.ToString(),
                                                     ", are the same address; each listener needs its own"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerAddresses> ParseServerAddresses(const ServerConfig& config) {
  ServerAddresses addresses;
  ASSIGN_OR_RETURN(addresses.admin, ParseAdmin(config.admin().listen()));
  ASSIGN_OR_RETURN(addresses.shared_memory, ParseSharedMemory(config.shared_memory().listen()));
  ASSIGN_OR_RETURN(addresses.metrics, ParseMetrics(config.metrics()));
  ASSIGN_OR_RETURN(addresses.calls, ParseCalls(config));
  std::vector<Listener> listeners;
  for (const ListenAddress& address : addresses.calls) listeners.push_back({"listen", address});
  if (addresses.admin.has_value()) listeners.push_back({"admin.listen", *addresses.admin});
  if (addresses.metrics.has_value()) listeners.push_back({"metrics", *addresses.metrics});
  if (addresses.shared_memory.has_value()) listeners.push_back({"shared_memory.listen", *addresses.shared_memory});
  RETURN_IF_ERROR(CheckApart(listeners));
  return addresses;
}

int64_t ConnectionIdleMs(const ServerConfig::Limits& limits, absl::Span<const ListenAddress> addresses) {
  constexpr int64_t kHalfAnHourMs = 30 * 60 * 1000;
  if (limits.connection_idle_ms() >= 0) return limits.connection_idle_ms();
  const bool is_local = std::all_of(addresses.begin(), addresses.end(), [](const auto& a) { return a.is_local(); });
  return is_local ? 0 : kHalfAnHourMs;
}

}  // namespace tensord::server
