#include "server/http/http_request.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace tensord::server {
namespace {

bool IsTokenByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("!#$%&'*+-.^_`|~", c);
}

bool IsToken(absl::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenByte); }

// Returns true for characters that a line may not have; a carriage return may stand at its end.
bool IsControl(char c) { return c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c)); }

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Returns the path of "/path?query" and of "http://host/path?query".
std::string PathOf(absl::string_view target) {
  if (absl::StartsWithIgnoreCase(target, "http://")) {
    target.remove_prefix(7);
    const size_t slash = target.find_first_of("/?");
    target = slash == absl::string_view::npos ? "/" : target.substr(slash);
    if (target.front() == '?') return "/";
  }
  return std::string(target.substr(0, target.find('?')));
}

// "GET /path HTTP/1.1"; whether hosts must be named goes to `needs_host`.
HttpHead ReadRequestLine(absl::string_view line, HttpRequest* request, bool* needs_host) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == absl::string_view::npos || first == last) return HttpHead::kMalformed;
  const absl::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const absl::string_view target = line.substr(first + 1, last - first - 1);
  if (!IsToken(method) || target.empty() ||
      !std::all_of(target.begin(), target.end(),
                   [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); }) ||
      version.size() != 8 || !absl::StartsWith(version, "HTTP/") || !IsDigit(version[5]) || version[6] != '.' ||
      !IsDigit(version[7])) {
    return HttpHead::kMalformed;
  }
  if (version[5] != '1') return HttpHead::kUnknownVersion;
  *needs_host = version[7] != '0';
  request->method = std::string(method);
  request->path = PathOf(target);
  return HttpHead::kComplete;
}

// "Name: value". Lines that go on with white space are of the past, and refused as RFC 9112 has it.
bool IsHeader(absl::string_view line, bool* is_host) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view name = line.substr(0, colon);
  *is_host = absl::EqualsIgnoreCase(name, "host");
  return IsToken(name);
}

}  // namespace

HttpHead ReadHttpRequest(absl::string_view received, HttpRequest* request) {
  absl::string_view rest = received.substr(0, kMostHttpHeadBytes);
  bool has_request_line = false, needs_host = false;
  int hosts = 0;
  for (size_t end; (end = rest.find('\n')) != absl::string_view::npos; rest.remove_prefix(end + 1)) {
    const absl::string_view line = absl::StripSuffix(rest.substr(0, end), "\r");
    if (std::any_of(line.begin(), line.end(), IsControl)) return HttpHead::kMalformed;
    if (line.empty()) {
      if (!has_request_line) continue;  // left over from a request before, as some clients do
      return hosts > 1 || (needs_host && hosts == 0) ? HttpHead::kMalformed : HttpHead::kComplete;
    }
    if (!has_request_line) {
      const HttpHead verdict = ReadRequestLine(line, request, &needs_host);
      if (verdict != HttpHead::kComplete) return verdict;
      has_request_line = true;
      continue;
    }
    bool is_host = false;
    if (!IsHeader(line, &is_host)) return HttpHead::kMalformed;
    hosts += is_host ? 1 : 0;
  }
  // TLS and other protocols are known by their first bytes, and need not wait for a line's end that never comes.
  if (std::any_of(rest.begin(), rest.end(), [](char c) { return c != '\r' && IsControl(c); })) {
    return HttpHead::kMalformed;
  }
  return received.size() < kMostHttpHeadBytes ? HttpHead::kIncomplete : HttpHead::kTooLarge;
}

}  // namespace tensord::server
