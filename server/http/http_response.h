#ifndef TENSORD_SERVER_HTTP_HTTP_RESPONSE_H_
#define TENSORD_SERVER_HTTP_HTTP_RESPONSE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::server {

// The answer to a request; the connection ends with it.
struct HttpResponse {
  int code = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // further ones; none is from a client
};

// Returns the answer to a refused request: its code and the reason, as a line of text.
HttpResponse HttpRefusal(int code, absl::string_view why);

// Returns the bytes of it. An answer to HEAD has the length of its body and not the body.
std::string EncodeHttpResponse(const HttpResponse& response, bool with_body, absl::Time date);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_HTTP_HTTP_RESPONSE_H_
