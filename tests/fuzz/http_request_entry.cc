#include <cstddef>
#include <string>

#include "server/http/http_request.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/require.h"

namespace tensord {

using server::HttpHead;
using server::HttpRequest;

void FuzzHttpRequest(absl::string_view bytes) {
  HttpRequest whole;
  const HttpHead verdict = server::ReadHttpRequest(bytes, &whole);
  if (verdict == HttpHead::kComplete) {
    Require(!whole.method.empty() && whole.method.size() + whole.path.size() < bytes.size(), "a request has a method");
    Require(whole.path.find_first_of("? \r\n") == std::string::npos, "a path ends before the query");
  }
  Require(verdict != HttpHead::kIncomplete || bytes.size() < server::kMostHttpHeadBytes, "a head is bounded");
  // All that come first, and a few sizes behind.
  for (size_t size = 0; size < bytes.size(); size += size < 256 ? 1 : 997) {
    HttpRequest part;
    const HttpHead early = server::ReadHttpRequest(bytes.substr(0, size), &part);
    if (early == HttpHead::kIncomplete) continue;
    Require(early == verdict, "a verdict stays");
    Require(early != HttpHead::kComplete || (part.method == whole.method && part.path == whole.path),
            "a request stays what it is");
  }
}

}  // namespace tensord
