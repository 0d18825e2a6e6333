#include "server/http/http_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

HttpHead Verdict(absl::string_view received) {
  HttpRequest request;
  return ReadHttpRequest(received, &request);
}

// "METHOD path", or nothing if it is no whole request.
std::string Read(absl::string_view received) {
  HttpRequest request;
  if (ReadHttpRequest(received, &request) != HttpHead::kComplete) return "";
  return absl::StrCat(request.method, " ", request.path);
}

TEST(HttpRequestTest, MethodsAndPaths) {
  EXPECT_EQ(Read("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), "GET /metrics");
  EXPECT_EQ(Read("HEAD /metrics?name=a&b=?c HTTP/1.1\r\nhOST:a:1\r\nAccept:\t*/*\r\n\r\n"), "HEAD /metrics");
  EXPECT_EQ(Read("GET / HTTP/1.0\r\n\r\n"), "GET /");
  EXPECT_EQ(Read("GET / HTTP/1.0\n\n"), "GET /") << "lines may end with line feeds alone";
  EXPECT_EQ(Read("\r\n\nGET / HTTP/1.0\r\n\r\n"), "GET /") << "what is left of a request before is passed over";
  EXPECT_EQ(Read("GET http://host:9464/metrics?a HTTP/1.1\r\nHost: a\r\n\r\n"), "GET /metrics");
  EXPECT_EQ(Read("GET http://host HTTP/1.0\r\n\r\n"), "GET /");
  EXPECT_EQ(Read("GET http://host?/metrics HTTP/1.0\r\n\r\n"), "GET /");
  EXPECT_EQ(Read("OPTIONS * HTTP/1.0\r\n\r\n"), "OPTIONS *");
  EXPECT_EQ(Read("CONNECT host:80 HTTP/1.1\r\nHost: host\r\n\r\n"), "CONNECT host:80");
  EXPECT_EQ(Read("get /Metrics HTTP/1.0\r\n\r\n"), "get /Metrics") << "case counts";
  EXPECT_EQ(Read("POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\n\0\xff\x01\n"), "POST /") << "bodies are not read";
  EXPECT_EQ(Read("GET / HTTP/1.1\r\nHost: a\r\nX: caf\xc3\xa9\r\nX:\r\n\r\n"), "GET /") << "values are anybody's";
  EXPECT_EQ(Read("GET / HTTP/1.7\r\nHost: a\r\n\r\n"), "GET /");
}

TEST(HttpRequestTest, WhatIsNoRequest) {
  for (const absl::string_view wrong : {"GET\r\n",
                                        "GET /\r\n",
                                        "GET  HTTP/1.1\r\n",
                                        " GET / HTTP/1.1\r\n",
                                        "GET / / HTTP/1.1\r\n",
                                        "GET / HTTP/1\r\n",
                                        "GET / HTTP/1.10\r\n",
                                        "GET / http/1.1\r\n",
                                        "GET / HTTP/x.1\r\n",
                                        "GET / HTTP/1.1 \r\n",
                                        "G(T / HTTP/1.1\r\n",
                                        "G\xc3\xa4T / HTTP/1.1\r\n",
                                        "GET /caf\xc3\xa9 HTTP/1.1\r\n",
                                        "GET /\ta HTTP/1.1\r\n",
                                        "GET /\r HTTP/1.1\r\n",
                                        "GET / HTTP/1.0\r\r\n",
                                        "GET / HTTP/1.0\r\nno colon\r\n",
                                        "GET / HTTP/1.0\r\n: nameless\r\n",
                                        "GET / HTTP/1.0\r\nSpace : a\r\n",
                                        "GET / HTTP/1.0\r\nA: b\r\n folded\r\n",
                                        "GET / HTTP/1.0\r\nA: b\rc\r\n",
                                        "GET / HTTP/1.1\r\n\r\n",
                                        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                                        "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
                                        "GET / HTTP/1.0\r\nA: \x01"}) {
    EXPECT_EQ(Verdict(wrong), HttpHead::kMalformed) << wrong;
  }
  EXPECT_EQ(Verdict(absl::string_view("GET / HTTP/1.0\r\nA: \0", 20)), HttpHead::kMalformed);
  EXPECT_EQ(Verdict("\x16\x03\x01\x02"), HttpHead::kMalformed) << "TLS is known before it has a line";
}

TEST(HttpRequestTest, OtherVersions) {
  EXPECT_EQ(Verdict("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HttpHead::kUnknownVersion);
  EXPECT_EQ(Verdict("GET / HTTP/0.9\r\n"), HttpHead::kUnknownVersion);
}

TEST(HttpRequestTest, MoreMustCome) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(Verdict(absl::string_view(whole).substr(0, size)), HttpHead::kIncomplete) << size;
  }
}

TEST(HttpRequestTest, HeadsAreBounded) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: a\r\nX: ", end = "\r\n\r\n";
  const size_t room = kMostHttpHeadBytes - begin.size() - end.size();
  EXPECT_EQ(Verdict(begin + std::string(room, 'x') + end), HttpHead::kComplete);
  EXPECT_EQ(Verdict(begin + std::string(room + 1, 'x') + end), HttpHead::kTooLarge);
  EXPECT_EQ(Verdict(std::string(kMostHttpHeadBytes - 1, 'G')), HttpHead::kIncomplete);
  EXPECT_EQ(Verdict(std::string(kMostHttpHeadBytes, 'G')), HttpHead::kTooLarge);
  EXPECT_EQ(Verdict(std::string(1 << 20, '\n')), HttpHead::kTooLarge);
  EXPECT_EQ(Verdict("GET / HTTP/1.0\r\n\r\n" + std::string(1 << 20, 'x')), HttpHead::kComplete) << "bodies are not";
}

}  // namespace
}  // namespace tensord::server
