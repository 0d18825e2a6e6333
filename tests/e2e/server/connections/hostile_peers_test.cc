// The cost that one connection can cause to the server, and its effect on others. The figures are printed.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/is_slow.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/observe/metrics_page_at.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/peers/http2_peer.h"
#include "tests/testlib/peers/tensor_chunk.h"
#include "tests/testlib/tls/certificate_authority.h"
#include "tests/testlib/tls/private_folder.h"
#include "tests/testlib/tls/server_certificate.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using SteadyClock = std::chrono::steady_clock;

std::unique_ptr<v1::Compute::Stub> DialAlone(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return v1::Compute::NewStub(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

// Somebody else, who calls all the time.
class Bystander {
 public:
  explicit Bystander(const std::string& target)
      : thread_([this, target] {
          const auto stub = DialAlone(target);
          while (!ends_) {
            grpc::ClientContext context;
            v1::ServerInfo info;
            const auto begin = SteadyClock::now();
            if (!stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok()) ++failed_;
            longest_ = std::max(longest_, std::chrono::duration<double>(SteadyClock::now() - begin).count());
            ++calls_;
          }
        }) {
    EXPECT_TRUE(WaitFor([this] { return calls_ >= 10; }));
  }
  ~Bystander() { End(); }
  // The longest that a call took, in seconds.
  double End() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    EXPECT_EQ(failed_, 0);
    return longest_;
  }

 private:
  std::atomic<bool> ends_{false};
  std::atomic<int> calls_{0};
  int failed_ = 0;
  double longest_ = 0;
  std::thread thread_;
};

enum class Way { kUnix, kTcp, kTls };

class HostilePeersTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
  void Start(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(),
                 {"--listen=unix:" + folder_.path() + "/s", "--listen=127.0.0.1:0", "--metrics=127.0.0.1:0"});
    if (GetParam() == Way::kTls) {
      WriteServerCertificate(files_, ca_.Issue());
      for (const std::string& setting : CertificateSettings(files_)) flags.push_back("--set=" + setting);
    }
    server_ = std::make_unique<Process>(flags, files_.PathOf("errors"));
    ASSERT_THAT(server_->Line(), StartsWith("listening grpc unix"));
    tcp_ = AddressIn(server_->Line());
    metrics_ = AddressIn(server_->Line());
  }
  std::string Socket() const { return "unix:" + folder_.path() + "/s"; }
  std::unique_ptr<Http2Peer> NewPeer() const {
    return std::make_unique<Http2Peer>(GetParam() == Way::kUnix ? Socket() : tcp_, GetParam() == Way::kTls);
  }
  bool Says(const std::string& line) const { return MetricsPageAt(metrics_).Says(line); }
  // Ends the server.
  std::string Log() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(), 0);
    std::ifstream file(files_.PathOf("errors"));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Checks that the peers cost little memory,
  template <typename Attack>
  void ExpectSmall(const char* what, Attack attack) {
    server_->ForgetPeak();
    const int64_t before = server_->PeakBytes();
    attack();
    const int64_t more = server_->PeakBytes() - before;
    std::printf("%s: %.1f MiB more at the peak\n", what, static_cast<double>(more) / kMiB);
#if defined(__SANITIZE_THREAD__)
    constexpr int64_t kTimes = 5;  // it has four bytes for each byte of the server's
#elif defined(__SANITIZE_ADDRESS__)
    constexpr int64_t kTimes = 4;  // it keeps what is freed for a while
#else
    constexpr int64_t kTimes = 1;
#endif
    EXPECT_LE(more, kTimes * 64 * kMiB);
  }
  // and nobody else waits for it.
  template <typename Attack>
  void ExpectHarmless(const char* what, Attack attack) {
    Bystander bystander(Socket());
    ExpectSmall(what, std::move(attack));
    const double longest = bystander.End();
    std::printf("%s: others' longest call %.0f ms\n", what, longest * 1e3);
    EXPECT_LE(longest, kIsSlow ? 2. : .5) << "0.1 on a quiet machine; seconds without the bounds";
  }

  const PrivateFolder files_;
  const CertificateAuthority ca_{"server CA"};
  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::string tcp_, metrics_;
};

INSTANTIATE_TEST_SUITE_P(Ways, HostilePeersTest, ::testing::Values(Way::kUnix, Way::kTcp, Way::kTls),
                         [](const auto& way) {
                           return way.param == Way::kUnix ? "Unix" : way.param == Way::kTcp ? "Tcp" : "Tls";
                         });

TEST_P(HostilePeersTest, HeadersWithoutEndEndTheirConnection) {
  Start();
  std::string part;
  for (int i = 0; i < 20; ++i) part += Http2Peer::Header(absl::StrCat("x-", i), std::string(120, 'x'));
  std::string flood =
      Http2Peer::Frame(Http2Peer::kHeaders, 0, 1, Http2Peer::CallHeaders("/tensord.v1.Compute/GetServerInfo"));
  while (flood.size() < 50'000'000) flood += Http2Peer::Frame(Http2Peer::kContinuation, 0, 1, part);
  ExpectHarmless("50 MB of headers, three times", [&] {
    std::vector<std::thread> peers;
    for (int i = 0; i < 3; ++i) {
      peers.emplace_back([&] {
        const auto peer = NewPeer();
        EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
      });
    }
    for (std::thread& peer : peers) peer.join();
  });
  EXPECT_TRUE(
      WaitFor([&] { return Says("tensord_connections_ended_total{listener=\"calls\",reason=\"headers\"} 3"); }));
  EXPECT_TRUE(Says("tensord_rpc_started_total{method=\"Execute\"} 0"));
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("\"event\":\"connections ended\""));
  EXPECT_THAT(log, HasSubstr(GetParam() == Way::kUnix ? "that of unix:pid=" : "that of ipv4:127.0.0.1:"));
}

std::string Resets(int count) {
  std::string flood;
  for (int i = 0; i < count; ++i) {
    const auto stream = static_cast<uint32_t>(2 * i + 1);
    flood += Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream,
                              Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream"));
    flood += Http2Peer::Frame(Http2Peer::kReset, 0, stream, Http2Peer::Number(8, 4));
  }
  return flood;
}

TEST_P(HostilePeersTest, CallsThatAreTakenBackAtOnceEndTheirConnection) {
  Start();
  const std::string flood = Resets(60'000);
  ExpectHarmless("60,000 resets", [&] {
    const auto peer = NewPeer();
    EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
  });
  // Where the server is so slow that it takes as many a second as are allowed, the bound of headers comes first.
  EXPECT_TRUE(WaitFor([&] {
    return Says("tensord_connections_ended_total{listener=\"calls\",reason=\"cancels\"} 1") ||
           (kIsSlow && Says("tensord_connections_ended_total{listener=\"calls\",reason=\"settings\"} 1"));
  }));
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_in_flight{method=\"ExecuteStream\"} 0"); }))
      << "no call of it stays, though nobody reads";
  EXPECT_THAT(Log(), HasSubstr(kIsSlow ? "connections ended" : "limits.cancels_per_second"));
}

TEST_P(HostilePeersTest, SettingsWithoutEndEndTheirConnection) {
  Start();
  std::string flood;
  for (int i = 0; i < 400'000; ++i) flood += Http2Peer::Frame(Http2Peer::kSettings, 0, 0, "");
  ExpectHarmless("400,000 settings", [&] {
    const auto peer = NewPeer();
    EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
  });
  EXPECT_TRUE(
      WaitFor([&] { return Says("tensord_connections_ended_total{listener=\"calls\",reason=\"cancels\"} 1"); }));
  EXPECT_THAT(Log(), HasSubstr("limits.cancels_per_second"));
}

// gRPC works on each of them and charges nobody.
TEST_P(HostilePeersTest, FramesWithoutContentEndTheirConnections) {
  Start();
  const std::pair<const char*, std::string> kinds[] = {
      {"a million priorities", Http2Peer::Frame(Http2Peer::kPriority, 0, 99, std::string(5, '\0'))},
      {"a million unknown frames", Http2Peer::Frame(Http2Peer::kUnknown, 0, 3, "")},
      {"a million acknowledgements", Http2Peer::Frame(Http2Peer::kSettings, 1, 0, "")},
      {"a million window updates", Http2Peer::Frame(Http2Peer::kWindow, 0, 0, Http2Peer::Number(1, 4))},
      {"a million bytes in frames of their own", Http2Peer::Frame(Http2Peer::kData, 0, 1, "x")}};
  for (const auto& [name, frame] : kinds) {
    std::string flood = Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 1,
                                         Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream"));
    for (int i = 0; i < 1'000'000; ++i) flood += frame;
    ExpectHarmless(name, [&] {
      const auto peer = NewPeer();
      EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
    });
  }
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_connections_ended_total{listener=\"calls\",reason=\"frames\"} 5"); }));
  EXPECT_THAT(Log(), HasSubstr("limits.cancels_per_second"));
}

TEST_P(HostilePeersTest, HeadersOfCallsThatEndedEndTheirConnection) {
  Start();
  const std::string headers = Http2Peer::CallHeaders("/tensord.v1.Compute/Nothing");
  std::string flood = Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders | Http2Peer::kEndStream, 1, headers);
  for (int i = 0; i < 300'000; ++i) flood += Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 1, headers);
  ExpectHarmless("300,000 headers of a call that has ended", [&] {
    const auto peer = NewPeer();
    EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
  });
  EXPECT_THAT(Log(), HasSubstr("connections ended"));
}

// gRPC holds a client to its settings once he has acknowledged them.
TEST_P(HostilePeersTest, CallsWithoutAcknowledgedSettingsEndTheirConnection) {
  Start();
  std::string flood;
  for (uint32_t stream = 1; stream < 2 * 60'000; stream += 2) {
    flood += Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream,
                              Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream"));
  }
  ExpectHarmless("60,000 calls at once", [&] {
    const auto peer = NewPeer();
    EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
  });
  EXPECT_TRUE(
      WaitFor([&] { return Says("tensord_connections_ended_total{listener=\"calls\",reason=\"settings\"} 1"); }));
  ExpectHarmless("60,000 calls at once after settings that were acknowledged too early", [&] {
    const auto peer = NewPeer();
    const bool sent = peer->Send(Http2Peer::Frame(Http2Peer::kSettings, 1, 0, "") + flood);
    EXPECT_TRUE(!sent || peer->EndsWithin(20'000));
  });
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_in_flight{method=\"ExecuteStream\"} 0"); }));
  EXPECT_THAT(Log(), HasSubstr("limits.streams_per_connection"));
}

// Also over TLS, where what was sent first is seen by another function.
TEST_P(HostilePeersTest, WhoAcknowledgesThemMakesAnyNumberOfCalls) {
  Start({"--set=limits.streams_per_connection=4"});
  const bool with_tls = GetParam() == Way::kTls;
  const auto stub = v1::Compute::NewStub(grpc::CreateChannel(
      GetParam() == Way::kUnix ? Socket()
      : with_tls               ? tcp_
                               : "ipv4:" + tcp_,
      with_tls ? grpc::SslCredentials({ca_.certificate(), "", ""}) : grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 50; ++i) {
    grpc::ClientContext context;
    v1::ServerInfo info;
    const grpc::Status status = stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_TRUE(Says("tensord_connections_ended_total{listener=\"calls\",reason=\"settings\"} 0"));
  Log();
}

// A byte stands for a header that was sent before.
TEST_P(HostilePeersTest, HeadersThatStandForOthersEndTheirConnection) {
  Start();
  const std::string added = std::string("\x40") + '\1' + "a" + '\0';  // 62 from now on
  std::string flood;
  for (uint32_t stream = 1; stream < 2 * 20; stream += 2) {
    flood += Http2Peer::Frame(Http2Peer::kHeaders, 0, stream,
                              Http2Peer::CallHeaders("/tensord.v1.Compute/GetServerInfo") + (stream == 1 ? added : ""));
    const std::string part = Http2Peer::Frame(Http2Peer::kContinuation, 0, stream, std::string(16'000, '\xBE'));
    for (int i = 0; i < 30; ++i) flood += part;
    flood += Http2Peer::Frame(Http2Peer::kContinuation, Http2Peer::kEndHeaders, stream, "");
  }
  ExpectHarmless("20 calls of 480,000 headers each", [&] {
    const auto peer = NewPeer();
    EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
  });
  EXPECT_THAT(Log(), HasSubstr("settings"));
}

TEST_P(HostilePeersTest, PingsThatNobodyReadsEndTheirConnection) {
  Start();
  std::string flood;
  // gRPC keeps some 400 bytes for each: all of them would cost 160 MB.
  for (int i = 0; i < 400'000; ++i) flood += Http2Peer::Frame(Http2Peer::kPing, 0, 0, "12345678");
  const auto attack = [&] {
    // Where they come slowly, gRPC ends the connection by itself, because it minds the third one.
    for (int i = 0; i < 10; ++i) {
      const auto peer = NewPeer();
      EXPECT_TRUE(!peer->Send(flood) || peer->EndsWithin(20'000));
      if (Says("tensord_connections_ended_total{listener=\"calls\",reason=\"cancels\"} 1")) break;
    }
  };
  if (kIsSlow) {
    attack();  // sanitizers keep more of what is freed for each ping than any bound allows
  } else {
    ExpectHarmless("400,000 pings", attack);
  }
  EXPECT_THAT(Log(), HasSubstr(kIsSlow ? "stopped" : "limits.cancels_per_second"));
}

// Messages that have come already are due as soon as the stream asks for the next one.
TEST_P(HostilePeersTest, TinyMessagesOfManyUploadsLetOthersBy) {
  Start();
  const auto stub = DialAlone(Socket());
  grpc::ClientContext context;
  v1::Session session;
  ASSERT_TRUE(stub->OpenSession(&context, v1::OpenSessionRequest(), &session).ok());
  std::vector<std::string> floods;
  for (int i = 0; i < 48; ++i) {
    v1::PutTensorRequest header;
    header.mutable_header()->set_session(session.id());
    header.mutable_header()->set_handle(absl::StrCat("t", i));
    header.mutable_header()->set_dtype(v1::DTYPE_F32);
    header.mutable_header()->add_shape(4);
    constexpr size_t kWindow = 65535;  // that nobody has to enlarge
    std::string messages = Http2Peer::Message(header.SerializeAsString());
    const std::string empty = Http2Peer::Message(ChunkOf(0, "").SerializeAsString());
    while (messages.size() + empty.size() <= kWindow) messages += empty;
    floods.push_back(Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, 1,
                                      Http2Peer::CallHeaders("/tensord.v1.Compute/PutTensor")));
    for (size_t at = 0; at < messages.size(); at += 16384) {
      floods.back() += Http2Peer::Frame(Http2Peer::kData, 0, 1, absl::string_view(messages).substr(at, 16384));
    }
  }
  ExpectHarmless("450,000 messages of 48 uploads", [&] {
    std::vector<std::unique_ptr<Http2Peer>> peers;
    for (const std::string& flood : floods) {
      peers.push_back(NewPeer());
      EXPECT_TRUE(peers.back()->Send(flood));
    }
    EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_in_flight{method=\"PutTensor\"} 48"); }));
  });
  Log();  // and with its end the folder is empty
}

// gRPC frees no answer, not even of a call whose deadline has passed, before what it is writing is written.
TEST_P(HostilePeersTest, AnswersThatNobodyReadsEndTheirConnection) {
  Start({"--set=limits.unread_ms=100"});
  constexpr int kCalls = 8;
  v1::ExecuteRequest request;
  *request.mutable_graph() = GraphOf(R"(
    nodes { name: "y" iota { type { dtype: DTYPE_F32 shape { size: 1048576 } } } }
    outputs { name: "y" value: "y" })");
  std::string calls = Http2Peer::Frame(Http2Peer::kWindow, 0, 0, Http2Peer::Number(1 << 30, 4));
  for (uint32_t i = 0; i < kCalls; ++i) {
    // Half of them pass their deadlines soon, on a slow machine with nothing to answer; the others answer on any.
    calls += Http2Peer::Call(2 * i + 1, "/tensord.v1.Compute/Execute", request.SerializeAsString(),
                             Http2Peer::Header("grpc-timeout", i % 2 == 0 ? "300m" : "10M"));
    calls += Http2Peer::Frame(Http2Peer::kWindow, 0, 2 * i + 1, Http2Peer::Number(1 << 30, 4));
  }
  const auto peer = NewPeer();
  ASSERT_TRUE(peer->Send(calls));
  EXPECT_TRUE(WaitFor([&] { return Says(absl::StrCat("tensord_rpc_started_total{method=\"Execute\"} ", kCalls)); }));
  EXPECT_TRUE(peer->EndsWithin(60'000));
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_rpc_in_flight{method=\"Execute\"} 0"); }));
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_memory_bytes{device=\"cpu:0\",state=\"in_use\"} 0"); }));
  EXPECT_TRUE(Says("tensord_connections_ended_total{listener=\"calls\",reason=\"unread\"} 1"));
  EXPECT_THAT(Log(), HasSubstr("limits.unread_ms"));
}

// Impatient clients cancel all calls at once.
TEST(PatientServerTest, CancellingAllCallsOfAConnectionIsAllRight) {
  InProcessServer server({"listen=127.0.0.1:0"});
  Http2Peer peer(server.daemon().grpc_addresses().at(1));
  std::string calls, resets;
  for (uint32_t stream = 1; stream < 2 * 256; stream += 2) {
    calls += Http2Peer::Frame(Http2Peer::kHeaders, Http2Peer::kEndHeaders, stream,
                              Http2Peer::CallHeaders("/tensord.v1.Compute/ExecuteStream"));
    resets += Http2Peer::Frame(Http2Peer::kReset, 0, stream, Http2Peer::Number(8, 4));
  }
  EXPECT_TRUE(peer.Send(calls + resets));
  EXPECT_TRUE(peer.Send(Http2Peer::Call(513, "/tensord.v1.Compute/GetServerInfo")));
  EXPECT_TRUE(WaitFor([&] { return server.Metric("tensord_rpc_started_total", "GetServerInfo") == 1; }));
  EXPECT_EQ(server.Metric("tensord_connections_ended_total", "calls"), 0);
}

TEST_P(HostilePeersTest, CompressedMessagesAreRefusedAsTheyAre) {
  Start();
  v1::ExecuteRequest request;
  request.mutable_graph()->set_name(std::string(128 << 20, 'x'));  // of which some 130 KB are sent
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    ExpectSmall(algorithm == GRPC_COMPRESS_GZIP ? "128 MiB as gzip" : "128 MiB as deflate", [&] {
      const auto stub = DialAlone(Socket());
      grpc::ClientContext context;
      context.set_compression_algorithm(algorithm);
      v1::ExecuteResponse response;
      const grpc::Status status = stub->Execute(&context, request, &response);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    });
  }
  EXPECT_TRUE(WaitFor([&] { return Says("tensord_grpc_errors_total 2"); }));
  EXPECT_THAT(Log(), HasSubstr("is disabled"));
}

}  // namespace
}  // namespace tensord
