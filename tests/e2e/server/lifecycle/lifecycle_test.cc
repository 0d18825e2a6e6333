// Start, health, metrics and the orderly end.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/observe/metrics/metrics.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/testlib/peers/tcp_client.h"

namespace tensord {
namespace {

using server::Daemon;
using server::ServerConfig;
using ::testing::HasSubstr;

const std::string kServing = "\x08\x01";     // HealthCheckResponse{status: SERVING}
const std::string kNotServing = "\x08\x02";  // NOT_SERVING

// HealthCheckRequest{service}.
std::string HealthRequest(const std::string& service) {
  return service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
}

TEST(HealthTest, ChecksEveryName) {
  InProcessServer server;
  const auto channel = server.Dial();
  for (const char* name : {"", "tensord.v1.Compute", "device/cpu:0"}) {
    const Reply reply = CallRaw(channel, "grpc.health.v1.Health/Check", HealthRequest(name));
    EXPECT_TRUE(reply.status.ok()) << name;
    EXPECT_EQ(reply.bytes, kServing) << name;
  }
  EXPECT_EQ(CallRaw(channel, "grpc.health.v1.Health/Check", HealthRequest("nobody")).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(HealthTest, OperatorsHearTheSame) {
  using server::ServingState;
  for (const bool has_grace : {true, false}) {
    const TemporaryFolder folder;
    const std::string admin = "unix:" + folder.path() + "/admin";
    InProcessServer server(
        {"cpu.executors=1", "admin.listen=" + admin, has_grace ? "drain.grace_ms=3600000" : "drain.grace_ms=0"});
    const v1::ExecuteRequest warm =
        WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
    const auto calls = server.Dial(), operators = grpc::CreateChannel(admin, grpc::InsecureChannelCredentials());
    const auto all_say = [&](const std::string& health) {
      for (const auto& channel : {calls, operators}) {
        for (const char* name : {"", "tensord.v1.Compute", "device/cpu:0"}) {
          if (CallRaw(channel, "grpc.health.v1.Health/Check", HealthRequest(name)).bytes != health) return false;
        }
      }
      return true;
    };
    EXPECT_TRUE(all_say(kServing));
    BlockedExecutor blocked(server);
    std::thread in_progress([&] {
      v1::ExecuteResponse response;
      EXPECT_TRUE(Execute(server.stub(), warm, &response).ok());
    });
    ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
    server.RequestStop();
    const ServingState state = has_grace ? ServingState::kServing : ServingState::kDraining;
    EXPECT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().state == state && all_say(kNotServing); }));
    blocked.Release();
    in_progress.join();
    if (has_grace) server.RequestStop();
    server.WaitUntilStopped();
  }
}

// The status of GET at a path of the metrics' listener.
int HttpStatusOf(const Daemon& daemon, const std::string& path) {
  const std::string answer = TcpClient(daemon.metrics_address()).Ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
  int code = 0;
  EXPECT_TRUE(absl::SimpleAtoi(answer.substr(std::string("HTTP/1.1 ").size(), 3), &code)) << answer;
  return code;
}

TEST(HealthTest, ReadinessByHttpFallsWithTheStartOfTheDrain) {
  InProcessServer server({"drain.grace_ms=3600000", "metrics=127.0.0.1:0"});
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  EXPECT_EQ(HttpStatusOf(server.daemon(), "/readyz"), 200);
  server.RequestStop();
  EXPECT_TRUE(WaitFor([&] { return HttpStatusOf(server.daemon(), "/readyz") == 503; }));
  v1::ExecuteResponse response;
  EXPECT_TRUE(Execute(server.stub(), warm, &response).ok()) << "it is the grace still";
  EXPECT_EQ(HttpStatusOf(server.daemon(), "/healthz"), 200);
  server.WaitUntilIdle();
  server.RequestStop();  // ends the grace
  server.WaitUntilStopped();
  EXPECT_EQ(HttpStatusOf(server.daemon(), "/readyz"), 503);
}

TEST(HealthTest, WatchSeesTheDrain) {
  InProcessServer server({"cpu.executors=1"});
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  RawStream watch(server.Dial(), "grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(HealthRequest("tensord.v1.Compute")));
  watch.WritesDone();
  std::string status;
  ASSERT_TRUE(watch.Read(&status));
  EXPECT_EQ(status, kServing);

  BlockedExecutor blocked(server);
  std::thread in_progress([&] {
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(server.stub(), warm, &response).ok()) << "a call in progress ends as it would have";
  });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  server.RequestStop();
  ASSERT_TRUE(watch.Read(&status));
  EXPECT_EQ(status, kNotServing);
  ASSERT_TRUE(WaitFor([&] { return server.parts().gate->snapshot().state == server::ServingState::kDraining; }));
  v1::ExecuteResponse response;
  const grpc::Status refused = Execute(server.stub(), warm, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(DetailOf(refused).reason(), "SERVER_DRAINING");
  blocked.Release();
  in_progress.join();
  server.WaitUntilStopped();
  EXPECT_EQ(server.parts().gate->snapshot().state, server::ServingState::kStopped);
  EXPECT_NE(access(server.socket_path().c_str(), F_OK), 0) << "the socket goes with the server";
}

class WarmingTest : public ::testing::Test {
 protected:
  // A server whose compiler does not get to its graphs.
  void SetUp() override {
    const std::string graph = folder_.path() + "/graph.pbtxt";
    std::ofstream(graph) << SmallAdd().DebugString();
    ServerConfig config;
    config.mutable_log()->set_level("off");
    for (const std::string& setting :
         {"listen=unix:" + folder_.path() + "/s", "warm_up.graphs=" + graph, std::string("warm_up.order=column"),
          std::string("compiler.threads=1"), std::string("metrics=127.0.0.1:0")}) {
      ASSERT_TRUE(server::SetConfigField(setting, &config).ok());
    }
    auto created = Daemon::Create(config);
    ASSERT_TRUE(created.ok()) << created.status();
    daemon_ = *std::move(created);
    ASSERT_TRUE(daemon_->parts()
                    .compile_pool->Submit("", [released = release_.get_future().share()] { released.wait(); })
                    .ok());
    channel_ = grpc::CreateChannel("unix:" + folder_.path() + "/s", grpc::InsecureChannelCredentials());
    serving_ = std::async(std::launch::async, [this] { return daemon_->Serve(); });
  }
  void TearDown() override {
    daemon_.reset();
    std::filesystem::remove(folder_.path() + "/graph.pbtxt");
  }
  std::string Health() {
    return CallRaw(channel_, "grpc.health.v1.Health/Check", HealthRequest("tensord.v1.Compute")).bytes;
  }

  TemporaryFolder folder_;
  std::promise<void> release_;
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::future<absl::Status> serving_;
};

TEST_F(WarmingTest, HealthAnswersAndCallsWaitForTheEnd) {
  EXPECT_TRUE(WaitFor([this] { return Health() == kNotServing; }));
  const auto stub = v1::Compute::NewStub(channel_);
  v1::CompileRequest request;
  *request.mutable_graph() = SmallAdd();
  v1::CompileResponse response;
  const grpc::Status refused = Compile(*stub, request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("warming up"));
  release_.set_value();
  EXPECT_TRUE(serving_.get().ok());
  EXPECT_EQ(Health(), kServing);
  EXPECT_TRUE(Compile(*stub, request, &response).ok());
  EXPECT_EQ(daemon_->parts().cache->stats().compiled, 1) << "it was the warm one";
}

TEST_F(WarmingTest, ReadinessByHttpComesWithTheEnd) {
  EXPECT_TRUE(WaitFor([this] { return daemon_->parts().gate->snapshot().state == server::ServingState::kWarming; }));
  EXPECT_EQ(HttpStatusOf(*daemon_, "/healthz"), 200);
  EXPECT_EQ(HttpStatusOf(*daemon_, "/readyz"), 503);
  release_.set_value();
  EXPECT_TRUE(serving_.get().ok());
  EXPECT_EQ(HttpStatusOf(*daemon_, "/readyz"), 200);
}

TEST_F(WarmingTest, ARequestToStopEndsIt) {
  EXPECT_TRUE(WaitFor([this] { return Health() == kNotServing; }));
  daemon_->RequestStop();
  EXPECT_TRUE(absl::IsCancelled(serving_.get())) << "the compiler is still busy";
  daemon_->RunUntilStopped();
  EXPECT_TRUE(daemon_->IsBusy());
  EXPECT_EQ(daemon_->parts().gate->snapshot().state, server::ServingState::kStopped);
  release_.set_value();
}

TEST_F(WarmingTest, AReloadIsKeptUntilItIsReady) {
  ServerConfig next = daemon_->config();
  next.mutable_log()->set_level("error");
  daemon_->Reload(next);
  EXPECT_FALSE(daemon_->parts().log->Logs(server::LogLevel::kError));
  release_.set_value();
  EXPECT_TRUE(serving_.get().ok());
  EXPECT_TRUE(daemon_->parts().log->Logs(server::LogLevel::kError));
}

TEST(DrainTest, TheGraceStillTakesCalls) {
  ::testing::internal::CaptureStderr();
  {
    InProcessServer server({"drain.grace_ms=3600000", "log.level=info"});
    const v1::ExecuteRequest warm =
        WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
    server.RequestStop();
    const auto channel = server.Dial();
    EXPECT_TRUE(WaitFor([&] {
      return CallRaw(channel, "grpc.health.v1.Health/Check", HealthRequest("tensord.v1.Compute")).bytes == kNotServing;
    }));
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(server.stub(), warm, &response).ok());
    server.WaitUntilIdle();
    server.RequestStop();  // ends the grace
    server.WaitUntilStopped();
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const size_t stopping = log.find("\"event\":\"stopping\""), call = log.find("\"method\":\"Execute\""),
               draining = log.find("\"event\":\"draining\"");
  ASSERT_NE(draining, std::string::npos) << log;
  EXPECT_LT(stopping, call);
  EXPECT_LT(call, draining);
}

TEST(DrainTest, CallsThatTakeTooLongAreCancelled) {
  InProcessServer server({"cpu.executors=1", "drain.timeout_ms=1"});
  const v1::ExecuteRequest warm =
      WarmRequest(server.stub(), LargeSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  BlockedExecutor blocked(server);
  std::thread in_progress([&] {
    v1::ExecuteResponse response;
    EXPECT_FALSE(Execute(server.stub(), warm, &response).ok());
  });
  ASSERT_TRUE(WaitFor([&] { return server.executor().stats().queued == 1; }));
  server.RequestStop();
  in_progress.join();
  // The client knows before the executor does.
  EXPECT_TRUE(WaitFor([&] { return server.executor().stats().queued == 0; }));
  blocked.Release();
  server.WaitUntilStopped();
  EXPECT_EQ(server.executor().stats().completed, 1) << "only what blocked the executor";
}

ServerConfig ConfigWith(const std::vector<std::string>& settings) {
  ServerConfig config;
  config.mutable_log()->set_level("off");
  for (const std::string& setting : settings) EXPECT_TRUE(server::SetConfigField(setting, &config).ok());
  return config;
}

TEST(ListenTest, ALivingServerKeepsItsSocket) {
  InProcessServer server;
  const auto second = Daemon::Start(ConfigWith({"listen=" + server.target()}));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("already"));
  v1::ServerInfo info;
  grpc::ClientContext context;
  EXPECT_TRUE(server.stub().GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
}

TEST(ListenTest, AServerThatEndsLeavesTheSocketsOfItsSuccessor) {
  TemporaryFolder folder;
  const std::string calls = folder.path() + "/s", admin = folder.path() + "/a", memory = folder.path() + "/m";
  const ServerConfig config =
      ConfigWith({"listen=unix:" + calls, "admin.listen=unix:" + admin, "shared_memory.listen=unix:" + memory});
  auto first = Daemon::Start(config);
  ASSERT_TRUE(first.ok()) << first.status();
  for (const std::string& path : {calls, admin, memory}) ASSERT_EQ(unlink(path.c_str()), 0);
  auto second = Daemon::Start(config);
  ASSERT_TRUE(second.ok()) << second.status();
  first->reset();
  for (const std::string& path : {calls, admin, memory}) EXPECT_EQ(access(path.c_str(), F_OK), 0) << path;
  second->reset();
  for (const std::string& path : {calls, admin, memory}) EXPECT_NE(access(path.c_str(), F_OK), 0) << path;
}

TEST(ListenTest, ALivingServerKeepsItsPort) {
  const auto first = Daemon::Start(ConfigWith({"listen=127.0.0.1:0"}));
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Daemon::Start(ConfigWith({"listen=" + (*first)->grpc_addresses()[0]}));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

TEST(ListenTest, TheSocketIsTheOwnersAlone) {
  InProcessServer server;
  struct stat info {};
  ASSERT_EQ(stat(server.socket_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0007, 0u) << "nobody else may connect";
}

TEST(ListenTest, SeveralAddresses) {
  TemporaryFolder folder;
  const auto daemon =
      Daemon::Start(ConfigWith({"listen=127.0.0.1:0", "listen=127.0.0.1:0", "listen=unix:" + folder.path() + "/s"}));
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  ASSERT_EQ((*daemon)->grpc_addresses().size(), 3u);
  for (const std::string& address : (*daemon)->grpc_addresses()) {
    EXPECT_THAT(address, Not(HasSubstr(":0")));
    const auto stub = v1::Compute::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    v1::ServerInfo info;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok()) << address;
  }
}

TEST(ListenTest, OtherMachinesMustBeAllowed) {
  const auto refused = Daemon::Start(ConfigWith({"listen=0.0.0.0:0"}));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--allow-insecure-listen"));
  EXPECT_TRUE(Daemon::Check(ConfigWith({"listen=0.0.0.0:0", "allow_insecure_listen=true"})).ok());
  EXPECT_FALSE(Daemon::Check(ConfigWith({"listen=nonsense"})).ok());
}

TEST(MetricsTest, PrometheusReadsThem) {
  InProcessServer server({"metrics=127.0.0.1:0"});
  v1::ExecuteResponse response;
  const std::vector<v1::Tensor> ones(2, FloatTensor(std::vector<float>(16, 1), {16}));
  ASSERT_TRUE(Execute(server.stub(), RequestOf(SmallAdd(), ones), &response).ok());
  ASSERT_TRUE(Execute(server.stub(), RequestOf(LargeSum(), {ones[0]}), &response).ok());
  v1::CompileResponse compiled;
  EXPECT_FALSE(Compile(server.stub(), v1::CompileRequest(), &compiled).ok());
  server.WaitUntilIdle();
  const std::string text = TcpClient(server.daemon().metrics_address()).Ask("GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(text, HasSubstr("200 OK"));
  for (const server::MetricInfo& info : server::AllMetrics()) {
    EXPECT_THAT(text, HasSubstr("# HELP " + std::string(info.name) + " ")) << "absent";
  }
  EXPECT_THAT(text, HasSubstr("tensord_rpc_handled_total{code=\"OK\",method=\"Execute\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_execute_stage_seconds_count{device=\"cpu:0\",stage=\"queue\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_compile_requests_total{result=\"miss\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_program_cache_entries{tier=\"memory\"} 2"));
  EXPECT_THAT(text, HasSubstr("tensord_memory_bytes{device=\"cpu:0\",state=\"in_use\"} "));
  EXPECT_THAT(text, HasSubstr("tensord_memory_blocks_total{device=\"cpu:0\",result=\"reused\"} "));
  EXPECT_THAT(text, HasSubstr("tensord_ready 1"));
}

TEST(ReflectionTest, ListsTheService) {
  InProcessServer server;
  for (const char* version : {"v1", "v1alpha"}) {
    RawStream stream(server.Dial(),
                     absl::StrCat("grpc.reflection.", version, ".ServerReflection/ServerReflectionInfo"));
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(stream.Write(std::string("\x3a\x01*", 3)));  // ServerReflectionRequest{list_services: "*"}
      std::string answer;
      ASSERT_TRUE(stream.Read(&answer));
      EXPECT_THAT(answer, HasSubstr("tensord.v1.Compute"));
      EXPECT_THAT(answer, HasSubstr("grpc.health.v1.Health"));
      EXPECT_THAT(answer, HasSubstr("grpc.reflection.v1alpha.ServerReflection"));
    }
    stream.WritesDone();
    EXPECT_TRUE(stream.Finish().ok());
  }
}

TEST(ReflectionTest, RefusesWhatIsNoRequest) {
  InProcessServer server;
  for (const std::string& bytes : {std::string("\x3a\x05*", 3), std::string(100'000, 'x')}) {
    RawStream stream(server.Dial(), "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    ASSERT_TRUE(stream.Write(bytes));
    std::string answer;
    EXPECT_FALSE(stream.Read(&answer));
    EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST(ReflectionTest, IsNotThereWhereItIsTurnedOff) {
  InProcessServer server({"reflection=false"});
  RawStream stream(server.Dial(), "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  stream.WritesDone();
  EXPECT_EQ(stream.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tensord
