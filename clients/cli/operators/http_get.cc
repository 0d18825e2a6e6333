#include "clients/cli/operators/http_get.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/load/dial.h"

namespace tensord::cli {
namespace {

constexpr size_t kMostBytes = size_t{64} << 20;
constexpr int kLookMillis = 50;

absl::Status Broken(absl::string_view address, absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("no page from ", address, ": ", what));
}

absl::Status SendAll(const load::Socket& socket, absl::string_view address, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return Broken(address, std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return absl::OkStatus();
}

// Waits until there is something to read.
absl::Status AwaitBytes(const load::Socket& socket, absl::string_view address, absl::Time deadline,
                        const std::atomic<bool>* is_given_up) {
  pollfd input = {.fd = socket.descriptor(), .events = POLLIN, .revents = 0};
  while (poll(&input, 1, kLookMillis) <= 0) {
    if (is_given_up != nullptr && *is_given_up) return absl::CancelledError("the page was given up");
    if (client::SteadyNow() > deadline) return Broken(address, "it takes too long");
  }
  return absl::OkStatus();
}

// Returns all that the server sends until it closes the connection.
absl::StatusOr<std::string> ReceiveAll(const load::Socket& socket, absl::string_view address, absl::Time deadline,
                                       const std::atomic<bool>* is_given_up) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    if (const absl::Status there = AwaitBytes(socket, address, deadline, is_given_up); !there.ok()) return there;
    const ssize_t received = recv(socket.descriptor(), buffer, sizeof(buffer), 0);
    if (received == 0) return text;
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return Broken(address, std::strerror(errno));
    text.append(buffer, static_cast<size_t>(received));
    if (text.size() > kMostBytes) return Broken(address, absl::StrCat("more than ", kMostBytes, " bytes"));
    if (client::SteadyNow() > deadline) return Broken(address, "it takes too long");
  }
}

// Returns the value of a header, whose lines are `head`.
std::optional<std::string> Header(absl::string_view head, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(head, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos || !absl::EqualsIgnoreCase(line.substr(0, colon), name)) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return std::nullopt;
}

absl::StatusOr<std::string> BodyOf(absl::string_view address, absl::string_view path, absl::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  const absl::string_view head = text.substr(0, end);
  const std::vector<absl::string_view> status =
      absl::StrSplit(head.substr(0, head.find('\r')), absl::MaxSplits(' ', 2));
  int code = 0;
  if (end == absl::string_view::npos || !absl::StartsWith(text, "HTTP/") || status.size() < 2 ||
      !absl::SimpleAtoi(status[1], &code)) {
    return Broken(address, "the answer is no HTTP");
  }
  if (code == 404) return absl::NotFoundError(absl::StrCat("no page ", path, " at ", address));
  if (code != 200) return Broken(address, absl::StrCat("HTTP status ", code));
  absl::string_view body = text.substr(end + 4);
  if (Header(head, "transfer-encoding").has_value()) return Broken(address, "it is in pieces, which was not asked for");
  uint64_t size = 0;
  if (const auto length = Header(head, "content-length"); length.has_value() && absl::SimpleAtoi(*length, &size)) {
    if (body.size() < size) return Broken(address, "it ended too early");
    body = body.substr(0, size);
  }
  return std::string(body);
}

}  // namespace

absl::StatusOr<std::string> GetPage(absl::string_view address, absl::string_view path, absl::Duration timeout,
                                    const std::atomic<bool>* is_given_up) {
  const absl::Time deadline = client::SteadyNow() + timeout;
  const absl::StatusOr<load::Socket> socket = load::Dial(address, timeout, is_given_up);
  if (!socket.ok()) return socket.status();
  const absl::Status sent = SendAll(
      *socket, address, absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: ", address, "\r\nConnection: close\r\n\r\n"));
  if (!sent.ok()) return sent;
  const absl::StatusOr<std::string> text = ReceiveAll(*socket, address, deadline, is_given_up);
  if (!text.ok()) return text.status();
  return BodyOf(address, path, *text);
}

}  // namespace tensord::cli
