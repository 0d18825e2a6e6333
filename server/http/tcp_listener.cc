#include "server/http/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

// Returns a listening socket, or -1 with errno.
int ListenAt(const addrinfo& at) {
  const int listener = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  const int on = 1;  // a port whose last connections still fade out is free; one that is listened at is not
  if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      bind(listener, at.ai_addr, at.ai_addrlen) == 0 && listen(listener, SOMAXCONN) == 0) {
    return listener;
  }
  const int error = errno;
  close(listener);
  errno = error;
  return -1;
}

void SetPort(int port, addrinfo* at) {
  const in_port_t number = htons(static_cast<uint16_t>(port));
  if (at->ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(at->ai_addr)->sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port = number;
  }
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> AddressesOf(absl::string_view host, int port) {
  absl::string_view name = host;
  if (absl::ConsumePrefix(&name, "[")) absl::ConsumeSuffix(&name, "]");
  addrinfo wanted{};
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(std::string(name).c_str(), absl::StrCat(port).c_str(), &wanted, &found);
  if (result != 0) {
    return absl::UnavailableError(
        absl::StrCat(host, ": ", result == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(result)));
  }
  return Addresses(found, &freeaddrinfo);
}

int PortOf(int listener) {
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

}  // namespace

TcpListener::TcpListener(int descriptor, std::string address) : descriptor_(descriptor), address_(std::move(address)) {}

TcpListener::TcpListener(TcpListener&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), address_(std::move(other.address_)) {}

TcpListener::~TcpListener() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<TcpListener> TcpListener::Open(absl::string_view host, int port) {
  ASSIGN_OR_RETURN(const Addresses addresses, AddressesOf(host, port));
  int error = 0;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    if (const int listener = ListenAt(*at); listener >= 0) {
      return TcpListener(listener, absl::StrCat(host, ":", PortOf(listener)));
    }
    if (error == 0) error = errno;
  }
  return absl::UnavailableError(std::strerror(error));
}

absl::StatusOr<std::vector<TcpListener>> TcpListener::OpenAll(absl::string_view host, int port) {
  ASSIGN_OR_RETURN(const Addresses addresses, AddressesOf(host, port));
  std::vector<TcpListener> listeners;
  std::set<std::string> tried;  // a name may have one address twice
  int common = port, error = 0;
  for (addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    SetPort(0, at);
    if (!tried.emplace(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen).second) continue;
    SetPort(common, at);
    if (const int listener = ListenAt(*at); listener >= 0) {
      common = PortOf(listener);
      listeners.push_back(TcpListener(listener, absl::StrCat(host, ":", common)));
      continue;
    }
    // A name may have addresses that this machine lacks, and the port that the first got may be taken at another.
    if (port != 0 && errno == EADDRINUSE) return absl::UnavailableError(std::strerror(errno));
    if (error == 0) error = errno;
  }
  if (listeners.empty()) return absl::UnavailableError(std::strerror(error));
  return listeners;
}

}  // namespace tensord::server
