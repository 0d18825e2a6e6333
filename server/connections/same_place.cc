#include "server/connections/same_place.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace tensord::server {
namespace {

// Returns the path without its links; as written if the system cannot resolve it.
std::string PlaceOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : place.string();
}

// In one spelling; empty: it is no number.
std::string NumberOf(int family, const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  char text[INET6_ADDRSTRLEN];
  if (inet_pton(family, host.c_str(), bytes) != 1) return "";
  return inet_ntop(family, bytes, text, sizeof(text)) == nullptr ? "" : text;
}

// Returns the addresses of a host of ListenAddress; the host itself if its name is not known here.
std::vector<std::string> AddressesOf(const std::string& host) {
  if (host == "localhost") return {"127.0.0.1", "::1"};
  const std::string number =
      host.front() == '[' ? NumberOf(AF_INET6, host.substr(1, host.size() - 2)) : NumberOf(AF_INET, host);
  return {number.empty() ? host : number};
}

bool IsEveryAddress(const std::string& host) {
  const std::string address = AddressesOf(host).front();
  return address == "0.0.0.0" || address == "::";
}

}  // namespace

bool IsSamePlace(const ListenAddress& a, const ListenAddress& b) {
  if (a.is_unix() != b.is_unix()) return false;
  if (a.is_unix()) return PlaceOf(a.socket_path) == PlaceOf(b.socket_path);
  if (a.port != b.port || a.port == 0) return false;
  if (IsEveryAddress(a.host) || IsEveryAddress(b.host)) return true;
  const std::vector<std::string> hosts = AddressesOf(b.host);
  for (const std::string& host : AddressesOf(a.host)) {
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) return true;
  }
  return false;
}

}  // namespace tensord::server
