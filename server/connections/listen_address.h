#ifndef TENSORD_SERVER_CONNECTIONS_LISTEN_ADDRESS_H_
#define TENSORD_SERVER_CONNECTIONS_LISTEN_ADDRESS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

// An address that the server listens at: a unix socket, or a TCP port.
struct ListenAddress {
  std::string socket_path;  // of a unix socket; empty: TCP
  std::string host;         // "127.0.0.1", "[::1]", "localhost"
  int port = 0;             // 0: a free one

  bool is_unix() const { return !socket_path.empty(); }
  // Tells whether only processes of this machine can reach it.
  bool is_local() const;
  // "unix:/path" or "host:port".
  std::string ToString() const;
};

// "unix:/path", "unix:///path" or "host:port". INVALID_ARGUMENT for anything else, and for a path that is too long for
// a socket.
absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text);

// Returns "unix:$XDG_RUNTIME_DIR/tensord.sock", or "unix:/tmp/tensord-<uid>/tensord.sock" if that variable is unset or
// empty. The latter folder is made, for this user alone, and refused if it belongs to somebody else.
absl::StatusOr<ListenAddress> DefaultListenAddress();

// Makes sure that the path is free: removes the socket of a server that is gone. UNAVAILABLE if a server answers on it,
// or if it is no socket. gRPC itself would take the path from a living server without a word.
absl::Status PrepareSocketPath(const std::string& path);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONNECTIONS_LISTEN_ADDRESS_H_
