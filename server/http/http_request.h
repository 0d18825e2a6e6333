#ifndef TENSORD_SERVER_HTTP_HTTP_REQUEST_H_
#define TENSORD_SERVER_HTTP_HTTP_REQUEST_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

// The request in the head of an HTTP/1 message.
struct HttpRequest {
  std::string method;  // as it was sent: methods are case-sensitive
  std::string path;    // without the query, not decoded; "*" and what CONNECT names are paths too
};

// The most bytes of a head, with the blank line that ends it.
inline constexpr size_t kMostHttpHeadBytes = 8192;

enum class HttpHead {
  kIncomplete,      // more of it must come
  kComplete,        // the request is read
  kMalformed,       // not HTTP/1
  kTooLarge,        // no end within kMostHttpHeadBytes
  kUnknownVersion,  // HTTP, of another major version
};

// Reads the head of a request (RFC 9112) from all bytes that have come so far; the bytes behind the head are not looked
// at. Any bytes are allowed. More bytes change no verdict but kIncomplete. `request` is set if the head is complete.
HttpHead ReadHttpRequest(absl::string_view received, HttpRequest* request);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_HTTP_HTTP_REQUEST_H_
