#include "server/http/http_response.h"

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

absl::string_view ReasonOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
  }
  return "";  // which HTTP allows
}

}  // namespace

HttpResponse HttpRefusal(int code, absl::string_view why) {
  HttpResponse response;
  response.code = code;
  response.body = absl::StrCat(why, "\n");
  return response;
}

std::string EncodeHttpResponse(const HttpResponse& response, bool with_body, absl::Time date) {
  std::string bytes =
      absl::StrCat("HTTP/1.1 ", response.code, " ", ReasonOf(response.code),
                   "\r\nDate: ", absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", date, absl::UTCTimeZone()),
                   "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(), "\r\n");
  for (const auto& [name, value] : response.headers) absl::StrAppend(&bytes, name, ": ", value, "\r\n");
  absl::StrAppend(&bytes, "Connection: close\r\n\r\n", with_body ? absl::string_view(response.body) : "");
  return bytes;
}

}  // namespace tensord::server
