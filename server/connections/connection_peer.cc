#include "server/connections/connection_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tensord::server {
namespace {

ConnectionPeer PeerOfV4(const in_addr& address, int port) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  const std::string name = absl::StrCat("ipv4:", text, ":", port);
  return {.name = name, .address = absl::StrCat("ipv4:", text), .text = name};
}

ConnectionPeer PeerOfV6(const in6_addr& address, int port) {
  // A host of today has a network of these bits.
  constexpr size_t kNetworkBytes = 8;
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &address, text, sizeof(text));
  const absl::string_view network(reinterpret_cast<const char*>(address.s6_addr), kNetworkBytes);
  return {.name = absl::StrCat("ipv6:%5B", text, "%5D:", port),  // as a URI has brackets
          .address = absl::StrCat("ipv6:", absl::BytesToHexString(network)),
          .text = absl::StrCat("ipv6:[", text, "]:", port)};
}

}  // namespace

std::string UnixPeerName(int connection) {
  ucred process{};
  socklen_t size = sizeof(process);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &process, &size) != 0) return "";
  return absl::StrCat("pid=", process.pid, ",uid=", process.uid);
}

ConnectionPeer ConnectionPeerOf(int connection, const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    const auto& at = reinterpret_cast<const sockaddr_in&>(from);
    return PeerOfV4(at.sin_addr, ntohs(at.sin_port));
  }
  if (from.ss_family != AF_INET6) {
    const std::string name = absl::StrCat("unix:", UnixPeerName(connection));
    return {.name = name, .address = "", .text = name};
  }
  const auto& at = reinterpret_cast<const sockaddr_in6&>(from);
  if (!IN6_IS_ADDR_V4MAPPED(&at.sin6_addr)) return PeerOfV6(at.sin6_addr, ntohs(at.sin6_port));
  in_addr v4{};
  std::copy_n(at.sin6_addr.s6_addr + 12, sizeof(v4), reinterpret_cast<uint8_t*>(&v4));
  return PeerOfV4(v4, ntohs(at.sin6_port));
}

}  // namespace tensord::server
