// The binary's /metrics, whatever is asked of it.
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/peers/tcp_client.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MetricsEndpointProcessTest, LivesThroughEveryRequest) {
  ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  PrivateFolder folder;
  Process server({"--listen=unix:" + folder.PathOf("s"), "--metrics=127.0.0.1:0"});
  server.Line();
  const std::string line = server.Line();
  absl::string_view address = line;
  ASSERT_TRUE(absl::ConsumePrefix(&address, "listening metrics ")) << line;
  std::vector<std::unique_ptr<TcpClient>> stalled;
  for (int i = 0; i < 8; ++i) {
    stalled.push_back(std::make_unique<TcpClient>(address));
    stalled.back()->Send("GET /metrics HTTP/1.1\r\n");
  }
  for (const char* method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get"}) {
    for (const char* target : {"/metrics", "/", "/metrics/x", "*", "/%00"}) {
      const std::string answer = TcpClient(address).Ask(absl::StrCat(
          method, " ", target, " HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"));
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 ")) << method << " " << target;
    }
  }
  EXPECT_THAT(TcpClient(address).Ask("\x16\x03\x01"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(TcpClient(address).Ask("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(TcpClient(address).Ask("GET /metrics HTTP/1.0\r\n\r\n"), HasSubstr("\ntensord_ready 1\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

}  // namespace
}  // namespace tensord
