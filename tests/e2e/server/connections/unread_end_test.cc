// The end of the server, whatever its peers and the reader of its log leave unread.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/observe/metrics_page_at.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/peers/http2_peer.h"

namespace tensord {
namespace {

using ::testing::StartsWith;

constexpr std::chrono::milliseconds kDrain{500};
constexpr std::chrono::milliseconds kAtMost = kDrain + std::chrono::seconds(2);

class UnreadEndTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
  void Start(std::vector<std::string> flags, const std::string& errors = "/dev/null") {
    flags.insert(flags.begin(), {"--listen=" + Socket(), "--listen=127.0.0.1:0", "--metrics=127.0.0.1:0",
                                 absl::StrCat("--set=drain.timeout_ms=", kDrain.count())});
    server_ = std::make_unique<Process>(flags, errors);
    ASSERT_THAT(server_->Line(), StartsWith("listening grpc unix"));
    tcp_ = AddressIn(server_->Line());
    metrics_ = AddressIn(server_->Line());
  }
  std::string Socket() const { return "unix:" + folder_.path() + "/s"; }
  bool Says(const std::string& line) const { return MetricsPageAt(metrics_).Says(line); }
  void ExpectEnd(std::chrono::milliseconds at_most) {
    ASSERT_TRUE(server_->EndsWithin(at_most));
    EXPECT_EQ(server_->Wait(), 0);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::string tcp_, metrics_;
};

// Answers that nobody takes: the server is in the middle of writing one of them.
void LeaveAnswersUnread(Http2Peer* peer) {
  peer->Send(Http2Peer::Frame(Http2Peer::kWindow, 0, 0, Http2Peer::Number(0x7FFF0000, 4)));
  uint32_t stream = 1;
  for (int i = 0; i < 200; ++i, stream += 2) {
    peer->SendWhileTaken(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream,
                                          Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream")),
                         1000);
  }
  for (int i = 0; i < 50; ++i, stream += 2) {
    peer->SendWhileTaken(Http2Peer::Call(stream, "/tensord.v1.Compute/GetServerInfo"), 1000);
  }
}

TEST_F(UnreadEndTest, StreamsAndAnswersOnASocketThatIsNotRead) {
  Start({});
  Http2Peer peer(Socket());
  LeaveAnswersUnread(&peer);
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_started_total{method=\"GetServerInfo\"} 50"); }));
  server_->Signal(SIGTERM);
  ExpectEnd(kAtMost);
}

TEST_F(UnreadEndTest, SettingsOverTcpThatAreNotRead) {
  Start({});
  Http2Peer peer(tcp_);
  std::string settings;
  for (int i = 0; i < 400'000; ++i) settings += Http2Peer::Frame(Http2Peer::kSettings, 0, 0, "");
  peer.Send(Http2Peer::Call(1, "/grpc.health.v1.Health/Watch"));
  peer.SendWhileTaken(settings, 1000);
  server_->Signal(SIGTERM);
  ExpectEnd(kAtMost);
}

TEST_F(UnreadEndTest, ALogThatIsNotRead) {
  const std::string log = folder_.path() + "/log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const int reader = open(log.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fcntl(reader, F_SETPIPE_SZ, 4096), 0);
  Start({}, log);
  const auto stub = v1::Compute::NewStub(grpc::CreateChannel(Socket(), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext context;
    v1::ServerInfo info;
    EXPECT_TRUE(stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
  }
  server_->Signal(SIGTERM);
  ExpectEnd(kAtMost);
  close(reader);
  unlink(log.c_str());
}

TEST_F(UnreadEndTest, TheSecondSignalDoesNotWait) {
  Start({"--set=drain.timeout_ms=3600000"});
  Http2Peer peer(Socket());
  LeaveAnswersUnread(&peer);
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_started_total{method=\"GetServerInfo\"} 50"); }));
  server_->Signal(SIGTERM);
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_draining 1"); }));
  server_->Signal(SIGTERM);
  ExpectEnd(std::chrono::seconds(30));  // of an hour
}

// Anybody who can connect may ask for health, without a token.
TEST_F(UnreadEndTest, CallsForHealthAreInAMetric) {
  Start({});
  Http2Peer peer(tcp_);
  for (uint32_t stream = 1; stream < 2 * 20; stream += 2) {
    peer.Send(Http2Peer::Call(stream, "/grpc.health.v1.Health/Watch"));
  }
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_grpc_calls_total 20"); }));
  server_->Signal(SIGTERM);
  ExpectEnd(kAtMost);
}

// A full disk takes nothing, as does a pipe that is closed; the alert is on this number.
TEST_F(UnreadEndTest, LinesThatAreNotTakenAreCounted) {
  Start({}, "/dev/full");
  EXPECT_TRUE(WaitFor([&] { return !Says("tensord_log_dropped_total 0"); }));
  server_->Signal(SIGTERM);
  ExpectEnd(kAtMost);
}

}  // namespace
}  // namespace tensord
