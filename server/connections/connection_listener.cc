#include "server/connections/connection_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/connections/connection_peer.h"
#include "server/connections/metered_connections.h"

namespace tensord::server {
namespace {

constexpr int kPauseMs = 100;
constexpr int kLookMs = 1000;  // at connections whose clients do not read

absl::Status CannotListen(const std::string& address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen at ", address, ": ", why, "; is the address taken, or its folder missing?"));
}

int PortIn(absl::string_view address) {
  int port = 0;
  return absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port) ? port : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionListener>> ConnectionListener::Open(absl::Span<const ListenAddress> addresses,
                                                                             ConnectionPlaces* places,
                                                                             std::shared_ptr<ConnectionBounds> bounds) {
  std::unique_ptr<ConnectionListener> listener(new ConnectionListener(places, std::move(bounds)));
  listener->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (listener->wake_ < 0) return absl::UnavailableError(absl::StrCat("cannot make an event: ", std::strerror(errno)));
  for (const ListenAddress& address : addresses) RETURN_IF_ERROR(listener->OpenAt(address));
  return listener;
}

absl::Status ConnectionListener::OpenPath(const std::string& path, int* descriptor) const {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());  // ParseListenAddress has looked at its length
  *descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (*descriptor >= 0 && bind(*descriptor, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0) {
    if (listen(*descriptor, SOMAXCONN) == 0) return absl::OkStatus();
    unlink(path.c_str());
  }
  const absl::Status status = CannotListen(absl::StrCat("unix:", path), std::strerror(errno));
  if (*descriptor >= 0) close(*descriptor);
  return status;
}

absl::Status ConnectionListener::OpenAt(ListenAddress address) {
  const size_t number = addresses_.size();
  if (address.is_unix()) {
    Socket socket{.descriptor = -1, .address = number, .is_unix = true};
    RETURN_IF_ERROR(OpenPath(address.socket_path, &socket.descriptor));
    sockets_.push_back(socket);
    files_.emplace_back(address.socket_path);
  } else {
    absl::StatusOr<std::vector<TcpListener>> listeners = TcpListener::OpenAll(address.host, address.port);
    if (!listeners.ok()) return CannotListen(address.ToString(), listeners.status().message());
    address.port = PortIn((*listeners)[0].address());
    for (TcpListener& listener : *listeners) {
      sockets_.push_back({.descriptor = listener.descriptor(), .address = number, .is_unix = false});
      tcp_.push_back(std::move(listener));
    }
  }
  addresses_.push_back(std::move(address));
  return absl::OkStatus();
}

ConnectionListener::~ConnectionListener() {
  Stop();
  if (wake_ >= 0) close(wake_);
}

void ConnectionListener::Start(Give give, Tell tell, bool is_encrypted) {
  is_encrypted_ = is_encrypted;
  give_ = std::move(give);
  tell_ = std::move(tell);
  thread_ = std::thread([this] { Loop(); });
}

void ConnectionListener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    while (write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  files_.clear();
  for (const Socket& socket : sockets_) {
    if (socket.is_unix) close(socket.descriptor);
  }
  sockets_.clear();
  tcp_.clear();
}

void ConnectionListener::Loop() {
  std::vector<pollfd> waited = {{.fd = wake_, .events = POLLIN, .revents = 0}};
  for (const Socket& socket : sockets_) waited.push_back({.fd = socket.descriptor, .events = POLLIN, .revents = 0});
  while (true) {
    if (poll(waited.data(), waited.size(), kLookMs) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    MeteredConnections::OfProcess().EndUnread(std::chrono::steady_clock::now());
    for (size_t i = 1; i < waited.size(); ++i) {
      if (waited[i].revents != 0) Accept(sockets_[i - 1]);
    }
  }
}

void ConnectionListener::Pause() const {
  pollfd wake{.fd = wake_, .events = POLLIN, .revents = 0};
  poll(&wake, 1, kPauseMs);
}

void ConnectionListener::Accept(const Socket& socket) {
  sockaddr_storage from{};
  socklen_t from_size = sizeof(from);
  const int connection =
      accept4(socket.descriptor, reinterpret_cast<sockaddr*>(&from), &from_size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    // Somebody still waits, and poll would return at once for ever.
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) Pause();
    return;
  }
  const ConnectionPeer peer = ConnectionPeerOf(connection, from);
  if (!places_->Take(connection, peer)) {
    close(connection);
    return Refuse();
  }
  const int on = 1;  // what is small goes out at once
  if (!socket.is_unix) setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  MeteredConnections::OfProcess().Add(connection, is_encrypted_ && !socket.is_unix, peer.text, bounds_);
  give_(socket.address, socket.descriptor, connection);
}

void ConnectionListener::Refuse() {
  ++refused_;
  const auto now = std::chrono::steady_clock::now();
  if (told_ != std::chrono::steady_clock::time_point::min() && now - told_ < kTellEvery) return;
  tell_(std::exchange(refused_, 0));
  told_ = now;
}

}  // namespace tensord::server
