#ifndef TENSORD_SERVER_SERVER_ADDRESSES_H_
#define TENSORD_SERVER_SERVER_ADDRESSES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/config/server_config.pb.h"
#include "server/connections/listen_address.h"

namespace tensord::server {

// The addresses at which one server listens, each for its kind of callers. A value.
struct ServerAddresses {
  std::vector<ListenAddress> calls;            // the default's place where none is set
  std::optional<ListenAddress> admin;          // none: there is no such listener; likewise below
  std::optional<ListenAddress> metrics;        // TCP
  std::optional<ListenAddress> shared_memory;  // a unix socket
};

// Parses the addresses and makes nothing. INVALID_ARGUMENT, with the settings and their values, if one is no address
// that its listener takes, if one of `calls` is beyond this machine without TLS and that was not allowed, or if two are
// the same.
absl::StatusOr<ServerAddresses> ParseServerAddresses(const ServerConfig& config);

// limits.connection_idle_ms for a server at these addresses, decided where it is left to the server. 0: never.
int64_t ConnectionIdleMs(const ServerConfig::Limits& limits, absl::Span<const ListenAddress> addresses);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_SERVER_ADDRESSES_H_
