#include "server/connections/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/connections/default_socket.h"

namespace tensord::server {
namespace {

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

// Tells whether something accepts connections at the path.
absl::StatusOr<bool> Answers(const std::string& path, int type = SOCK_STREAM) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return SystemError("cannot make a socket for", path);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  close(fd);
  // A socket of another type is somebody's too, who is gone or not: asked in that type.
  if (result != 0 && error == EPROTOTYPE && type == SOCK_STREAM) return Answers(path, SOCK_SEQPACKET);
  if (result == 0 || error == EAGAIN || error == EINPROGRESS) return true;
  if (error == ECONNREFUSED || error == ENOENT) return false;
  errno = error;
  return SystemError("cannot tell whether a server listens at", path);
}

absl::Status MakePrivateFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) == 0) return absl::OkStatus();
  if (errno != EEXIST) return SystemError("cannot make the folder", path);
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return SystemError("cannot look at", path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != getuid() || (info.st_mode & 077) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path, " is no folder that only this user can enter; choose another socket with --listen"));
  }
  return absl::OkStatus();
}

// "127.0.0.1", and no name that begins so.
bool IsLoopback(const std::string& host) {
  constexpr uint32_t kNetwork = 127;
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == kNetwork;
}

}  // namespace

bool ListenAddress::is_local() const { return is_unix() || host == "localhost" || host == "[::1]" || IsLoopback(host); }

std::string ListenAddress::ToString() const {
  return is_unix() ? absl::StrCat("unix:", socket_path) : absl::StrCat(host, ":", port);
}

absl::StatusOr<ListenAddress> ParseListenAddress(absl::string_view text) {
  ListenAddress address;
  if (absl::StartsWith(text, "unix:")) {
    absl::string_view path = text.substr(5);
    if (absl::StartsWith(path, "//")) path.remove_prefix(2);
    if (path.empty()) return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" names no path"));
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return absl::InvalidArgumentError(absl::StrCat("the path of a socket has at most ",
                                                     sizeof(sockaddr_un::sun_path) - 1, " bytes, not ", path.size(),
                                                     ": \"", path, "\""));
    }
    address.socket_path = std::string(path);
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || !absl::SimpleAtoi(text.substr(colon + 1), &address.port) ||
      address.port < 0 || address.port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("an address is unix:/path or host:port, not \"", text, "\""));
  }
  address.host = std::string(text.substr(0, colon));
  const bool has_colon = absl::StrContains(address.host, ":");
  const bool in_brackets = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (has_colon != in_brackets) {
    return absl::InvalidArgumentError(
        absl::StrCat("an IPv6 address stands in brackets: [::1]:4711, not \"", text, "\""));
  }
  return address;
}

absl::StatusOr<ListenAddress> DefaultListenAddress() {
  const DefaultSocket socket = DefaultSocketOfUser();
  if (socket.is_private_folder) RETURN_IF_ERROR(MakePrivateFolder(socket.folder));
  return ParseListenAddress(socket.address());
}

absl::Status PrepareSocketPath(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return SystemError("cannot look at", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::UnavailableError(absl::StrCat(path, " exists and is no socket; choose another path with --listen"));
  }
  ASSIGN_OR_RETURN(const bool answers, Answers(path));
  if (answers) {
    return absl::UnavailableError(
        absl::StrCat("a server listens at ", path, " already; choose another path with --listen"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError("cannot remove the socket", path);
  return absl::OkStatus();
}

}  // namespace tensord::server
