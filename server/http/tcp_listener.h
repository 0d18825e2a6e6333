#ifndef TENSORD_SERVER_HTTP_TCP_LISTENER_H_
#define TENSORD_SERVER_HTTP_TCP_LISTENER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::server {

// A TCP port that connections come in at. Owns its socket, which does not block.
class TcpListener {
 public:
  // `host` is a name or a number, an IPv6 address in brackets; port 0 is a free one. UNAVAILABLE if the name is
  // unknown, or the port is taken or not allowed.
  static absl::StatusOr<TcpListener> Open(absl::string_view host, int port);
  // Opens a listener at every address of the name on this machine, all at one port, at least one. UNAVAILABLE also if
  // the requested port is taken at one of them.
  static absl::StatusOr<std::vector<TcpListener>> OpenAll(absl::string_view host, int port);
  ~TcpListener();
  TcpListener(TcpListener&& other) noexcept;
  TcpListener& operator=(TcpListener&&) = delete;

  int descriptor() const { return descriptor_; }
  // "host:port", the host as it was given, the port that it got.
  const std::string& address() const { return address_; }

 private:
  TcpListener(int descriptor, std::string address);

  int descriptor_;
  std::string address_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_HTTP_TCP_LISTENER_H_
