#include "clients/load/dial.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace tensord::load {
namespace {

absl::Status CannotConnect(absl::string_view target, int error) {
  return absl::UnavailableError(absl::StrCat("cannot connect to ", target, ": ", std::strerror(error)));
}

// Connects a socket, of which every wait ends soon after it is given up. Returns 0 or an error's number.
int ConnectUnless(const std::atomic<bool>& is_given_up, int descriptor, const sockaddr* address, socklen_t size,
                  absl::Duration timeout) {
  constexpr int kLookMillis = 50;
  const int flags = fcntl(descriptor, F_GETFL);
  fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  if (connect(descriptor, address, size) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd made = {.fd = descriptor, .events = POLLOUT, .revents = 0};
    int64_t left = absl::ToInt64Milliseconds(timeout);
    for (; left > 0 && !is_given_up && poll(&made, 1, kLookMillis) <= 0; left -= kLookMillis) {
    }
    if (is_given_up) return ECANCELED;
    if (left <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t error_size = sizeof(error);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return errno;
    if (error != 0) return error;
  }
  fcntl(descriptor, F_SETFL, flags);
  return 0;
}

absl::StatusOr<Socket> Connect(absl::string_view target, int family, const sockaddr* address, socklen_t size,
                               absl::Duration timeout, const std::atomic<bool>* is_given_up) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.descriptor() < 0) return CannotConnect(target, errno);
  const timeval limit = absl::ToTimeval(timeout);
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  const int on = 1;
  if (family != AF_UNIX) setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // One of the machine itself is connected at once.
  if (is_given_up == nullptr || family == AF_UNIX) {
    if (connect(socket.descriptor(), address, size) != 0) return CannotConnect(target, errno);
  } else if (const int error = ConnectUnless(*is_given_up, socket.descriptor(), address, size, timeout); error != 0) {
    if (error == ECANCELED) return absl::CancelledError(absl::StrCat("the connection to ", target, " was given up"));
    return CannotConnect(target, error);
  }
  return socket;
}

absl::StatusOr<Socket> DialUnix(absl::string_view target, absl::string_view path, absl::Duration timeout) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("a socket's path is empty or too long: ", target));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return Connect(target, AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address), timeout, nullptr);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::Cut() { shutdown(descriptor_, SHUT_RDWR); }

int Socket::Duplicate() const { return fcntl(descriptor_, F_DUPFD_CLOEXEC, 0); }

absl::StatusOr<Socket> Dial(absl::string_view target, absl::Duration timeout, const std::atomic<bool>* is_given_up) {
  absl::string_view address = target;
  if (absl::ConsumePrefix(&address, "unix:")) {
    absl::ConsumePrefix(&address, "//");
    return DialUnix(target, address, timeout);
  }
  absl::ConsumePrefix(&address, "dns:///");
  absl::ConsumePrefix(&address, "ipv4:");
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(absl::StrCat("no address such as host:port or unix:/path: ", target));
  }
  // getaddrinfo takes the lower 16 bits of larger numbers.
  const absl::string_view port = address.substr(colon + 1);
  uint64_t number = 0;
  const bool is_number = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (is_number && (!absl::SimpleAtoi(port, &number) || number > 65535)) {
    return absl::InvalidArgumentError(absl::StrCat("a port is at most 65535: ", target));
  }
  std::string host(address.substr(0, colon));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const addrinfo hints = {.ai_flags = 0, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::string(port).c_str(), &hints, &found);
  if (error != 0) return absl::UnavailableError(absl::StrCat("cannot find ", target, ": ", gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  absl::StatusOr<Socket> socket = absl::UnavailableError(absl::StrCat("no address belongs to ", target));
  for (const addrinfo* at = found; at != nullptr && !socket.ok(); at = at->ai_next) {
    if (absl::IsCancelled(socket.status())) break;
    socket = Connect(target, at->ai_family, at->ai_addr, at->ai_addrlen, timeout, is_given_up);
  }
  return socket;
}

}  // namespace tensord::load
