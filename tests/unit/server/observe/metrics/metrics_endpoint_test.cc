#include "server/observe/metrics/metrics_endpoint.h"

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/peers/tcp_client.h"

namespace tensord::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kPage[] = "# HELP calls_total Calls.\n# TYPE calls_total counter\ncalls_total 3\n";

TEST(MetricsEndpointTest, RefusesWhatIsNoAddress) {
  for (const char* wrong :
       {"", "80", ":80", "host:", "host:99999", "127.0.0.1:0,127.0.0.1:1", "host:-1", "::1:0", "[]:0"}) {
    EXPECT_EQ(MetricsEndpoint::Start(wrong, {}, {}).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(MetricsEndpointTest, BindsAFreePortAndKeepsIt) {
  const auto first = MetricsEndpoint::Start("127.0.0.1:0", {}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)->address(), HasSubstr("127.0.0.1:"));
  EXPECT_THAT((*first)->address(), Not(HasSubstr(":0")));
  EXPECT_EQ(MetricsEndpoint::Start((*first)->address(), {}, {}).status().code(), absl::StatusCode::kUnavailable);
}

class MetricsPageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    prometheus::BuildCounter().Name("calls_total").Help("Calls.").Register(*registry_).Add({}).Increment(3);
    auto endpoint =
        MetricsEndpoint::Start("localhost:0", {registry_}, {.is_ready = [this] { return is_ready_.load(); }});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
  }
  std::string Ask(absl::string_view method, absl::string_view target) const {
    return TcpClient(endpoint_->address()).Ask(absl::StrCat(method, " ", target, " HTTP/1.1\r\nHost: a\r\n\r\n"));
  }

  std::atomic<bool> is_ready_{true};
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  std::unique_ptr<MetricsEndpoint> endpoint_;
};

TEST_F(MetricsPageTest, GetAndHead) {
  const std::string length = absl::StrCat("\r\nContent-Length: ", sizeof(kPage) - 1, "\r\n");
  for (const char* target : {"/metrics", "/metrics?", "/metrics?name=a", "http://host/metrics"}) {
    EXPECT_THAT(Ask("GET", target),
                AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr(length), EndsWith(absl::StrCat("\r\n\r\n", kPage)),
                      HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n")));
    EXPECT_THAT(Ask("HEAD", target), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr(length), EndsWith("\r\n\r\n")));
  }
}

TEST_F(MetricsPageTest, OtherPaths) {
  for (const char* target : {"/", "/metrics/", "/Metrics", "/metrics/a", "//metrics", "/favicon.ico", "*", "metrics",
                             "/healthz/", "/readyz/a", "/health"}) {
    EXPECT_THAT(Ask("GET", target), AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), EndsWith("/metrics\n"))) << target;
    EXPECT_THAT(Ask("HEAD", target), AllOf(StartsWith("HTTP/1.1 404 "), EndsWith("\r\n\r\n"))) << target;
    EXPECT_THAT(Ask("POST", target), StartsWith("HTTP/1.1 404 ")) << target;
  }
}

TEST_F(MetricsPageTest, ProbesSayWhetherItLivesAndIsReady) {
  for (const bool is_ready : {true, false, true}) {
    is_ready_ = is_ready;
    EXPECT_THAT(Ask("GET", "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
    const char* const answer = is_ready ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 503 Service Unavailable\r\n";
    EXPECT_THAT(Ask("GET", "/readyz?verbose"), AllOf(StartsWith(answer), HasSubstr("the server is ")));
    EXPECT_THAT(Ask("HEAD", "/readyz"), AllOf(StartsWith(answer), EndsWith("\r\n\r\n")));
  }
}

TEST_F(MetricsPageTest, OtherMethods) {
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "ANYTHING"}) {
    for (const char* path : {"/metrics", "/healthz", "/readyz"}) {
      EXPECT_THAT(Ask(method, path),
                  AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"), HasSubstr("\r\nAllow: GET, HEAD\r\n")))
          << method << path;
    }
  }
}

TEST_F(MetricsPageTest, AnUpgradeIsNotTakenUp) {
  EXPECT_THAT(TcpClient(endpoint_->address())
                  .Ask("GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                       "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith(kPage)));
}

TEST_F(MetricsPageTest, WhatIsCollectedMayGoFirst) {
  registry_.reset();
  EXPECT_THAT(Ask("GET", "/metrics"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), HasSubstr("Content-Length: 0\r\n")));
}

class Broken : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override { throw std::runtime_error("out of order"); }
};

TEST(MetricsEndpointTest, WhatCannotBeCollectedIsToldAndTheServerLives) {
  const auto broken = std::make_shared<Broken>();
  const auto endpoint = MetricsEndpoint::Start("127.0.0.1:0", {broken}, {});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(TcpClient((*endpoint)->address()).Ask("GET /metrics HTTP/1.0\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 500 "), EndsWith("out of order\n")));
  }
}

}  // namespace
}  // namespace tensord::server
