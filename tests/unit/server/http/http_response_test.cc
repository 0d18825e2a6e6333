#include "server/http/http_response.h"

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

TEST(HttpResponseTest, Bytes) {
  HttpResponse page;
  page.body = "a\nb\n";
  const absl::Time date = absl::FromUnixSeconds(784111777);  // of RFC 9110
  EXPECT_EQ(EncodeHttpResponse(page, /*with_body=*/true, date),
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 4\r\nConnection: close\r\n\r\na\nb\n");
  HttpResponse refusal = HttpRefusal(405, "no");
  refusal.headers.emplace_back("Allow", "GET");
  EXPECT_EQ(EncodeHttpResponse(refusal, /*with_body=*/false, date),
            "HTTP/1.1 405 Method Not Allowed\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nAllow: GET\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace tensord::server
