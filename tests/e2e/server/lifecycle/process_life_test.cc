// The life of the binary: killed under load, stopped under load, and what it tells the manager that started it.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/raw_stream.h"
#include "tests/e2e/server/server_process.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<v1::Compute::Stub> Dial(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Compute::NewStub(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

bool IsRight(const v1::ExecuteResponse& response, float scale) {
  return response.results_size() == 1 && FloatsOf(response.results(0).tensor()) == std::vector<float>(16, 8192 * scale);
}

v1::Tensor Twos() { return FloatTensor(std::vector<float>(16, 2), {16}); }

class ProcessLifeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
  ~ProcessLifeTest() override {
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
  }

  std::string Target(const std::string& name = "s") const { return "unix:" + folder_.path() + "/" + name; }
  std::string Programs() const { return folder_.path() + "/programs"; }

  TemporaryFolder folder_;
};

// The programs that clients got, by scale.
class KnownPrograms {
 public:
  void Add(float scale, const std::string& fingerprint) {
    const std::lock_guard<std::mutex> lock(mutex_);
    programs_[scale] = fingerprint;
  }
  std::map<float, std::string> Get() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return programs_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<float, std::string> programs_;
};

// Compiles and runs new programs until the server is gone. Every answer must be right.
void UseUntilGone(const std::string& target, std::atomic<int>* next_scale, std::atomic<int>* answered,
                  KnownPrograms* known) {
  const auto stub = Dial(target);
  while (true) {
    const float scale = static_cast<float>(next_scale->fetch_add(1));
    v1::CompileRequest compile;
    *compile.mutable_graph() = LargeSum(scale);
    v1::CompileResponse compiled;
    if (!Compile(*stub, compile, &compiled).ok()) return;
    known->Add(scale, compiled.program().fingerprint());
    v1::ExecuteRequest request = RequestOf(v1::Graph(), {Twos()});
    request.set_fingerprint(compiled.program().fingerprint());
    v1::ExecuteResponse response;
    if (!Execute(*stub, request, &response).ok()) return;
    EXPECT_TRUE(IsRight(response, scale)) << scale;
    ++*answered;
  }
}

TEST_F(ProcessLifeTest, KillsNeverPoisonTheDisk) {
  const char* const wanted = std::getenv("TENSORD_KILL_ROUNDS");
  const int rounds = wanted == nullptr ? 5 : std::atoi(wanted);
  std::atomic<int> next_scale{1};
  KnownPrograms known;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Process server({"--listen=" + Target(), "--set=program_cache.disk_path=" + Programs(), "--log-level=off"});
    ASSERT_THAT(server.Line(), StartsWith("listening grpc")) << "every start works";
    std::atomic<int> answered{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&] { UseUntilGone(Target(), &next_scale, &answered, &known); });
    }
    // Each round at another moment of the writer's work; in the last it has finished some.
    const auto has_written = [&] {
      for (const auto& entry : fs::directory_iterator(Programs())) {
        if (entry.path().extension() == ".program") return true;
      }
      return false;
    };
    EXPECT_TRUE(WaitFor([&] { return answered >= 5 + 7 * round % 31 && (round + 1 < rounds || has_written()); }));
    server.Signal(SIGKILL);
    EXPECT_EQ(server.Wait(), 128 + SIGKILL);
    for (std::thread& client : clients) client.join();
  }

  InProcessServer server({"program_cache.disk_path=" + Programs(), "program_cache.restore_ms=600000"});
  for (size_t i = 1; i < kNumEntryDamages; ++i) {
    const std::string reason(Name(static_cast<EntryDamage>(i)));
    EXPECT_EQ(server.Metric("tensord_program_cache_load_errors_total", reason), 0) << reason;
  }
  int on_disk = 0;
  for (const auto& entry : fs::directory_iterator(Programs())) {
    EXPECT_EQ(entry.path().extension(), ".program") << "no leftover stays";
    ++on_disk;
  }
  EXPECT_GT(on_disk, 0);
  EXPECT_EQ(server.Metric("tensord_program_cache_entries", "memory"), on_disk);
  int found = 0;
  for (const auto& [scale, fingerprint] : known.Get()) {
    v1::ExecuteRequest request = RequestOf(v1::Graph(), {Twos()});
    request.set_fingerprint(fingerprint);
    v1::ExecuteResponse response;
    const grpc::Status status = Execute(server.stub(), request, &response);
    if (!status.ok()) {
      EXPECT_EQ(DetailOf(status).reason(), "PROGRAM_NOT_FOUND") << "not written when the server was killed";
      continue;
    }
    EXPECT_TRUE(IsRight(response, scale)) << scale;
    ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_LE(found, on_disk) << "the others were written when their clients had no answer yet";
}

// Leaves a server as soon as its health says NOT_SERVING, as load balancers do.
class HealthWatcher {
 public:
  explicit HealthWatcher(const std::string& target)
      : stream_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()), "grpc.health.v1.Health/Watch"),
        thread_([this] {
          stream_.Write("");
          std::string status;
          while (stream_.Read(&status) && status == "\x08\x01") {
          }
          left_ = true;
        }) {}
  ~HealthWatcher() { thread_.join(); }
  bool left() const { return left_; }

 private:
  RawStream stream_;
  std::atomic<bool> left_{false};
  std::thread thread_;
};

TEST_F(ProcessLifeTest, SigtermUnderLoadFailsNoCallOfWhoHonoursHealth) {
  Process first({"--listen=" + Target("a"), "--set=drain.grace_ms=3600000", "--log-level=off"});
  Process second({"--listen=" + Target("b"), "--log-level=off"});
  ASSERT_THAT(first.Line(), StartsWith("listening grpc"));
  ASSERT_THAT(second.Line(), StartsWith("listening grpc"));
  constexpr int kCalls = 20;
  std::atomic<int> at_first{0}, at_second{0}, failed{0};
  {
    HealthWatcher health(Target("a"));
    std::vector<std::thread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, i] {
        const auto a = Dial(Target("a")), b = Dial(Target("b"));
        for (int calls_at_second = 0; calls_at_second < kCalls;) {
          const bool at_b = health.left();
          const float scale = static_cast<float>(1 + i);
          v1::ExecuteResponse response;
          const grpc::Status status = Execute(at_b ? *b : *a, RequestOf(LargeSum(scale), {Twos()}), &response);
          if (!status.ok() || !IsRight(response, scale)) {
            ADD_FAILURE() << status.error_message();
            ++failed;
          }
          if (at_b) ++calls_at_second;
          ++(at_b ? at_second : at_first);
        }
      });
    }
    EXPECT_TRUE(WaitFor([&] { return at_first >= 50; }));
    first.Signal(SIGTERM);
    for (std::thread& client : clients) client.join();
    first.Signal(SIGTERM);  // ends the grace, which nobody needs any more
    EXPECT_EQ(first.Wait(), 0);
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(at_second, 4 * kCalls);
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait(), 0);
}

TEST_F(ProcessLifeTest, TellsItsManagerHowItIs) {
  const std::string name = folder_.path() + "/notify";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(manager, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const auto receive = [manager] {
    char bytes[512];
    const ssize_t size = recv(manager, bytes, sizeof(bytes), 0);
    return size < 0 ? std::string() : std::string(bytes, static_cast<size_t>(size));
  };
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  setenv("WATCHDOG_USEC", "20000", 1);
  Process server({"--listen=" + Target(), "--log-level=off"});
  unsetenv("NOTIFY_SOCKET");
  unsetenv("WATCHDOG_USEC");
  EXPECT_THAT(receive(), StartsWith("READY=1\nSTATUS=serves at unix:"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(receive(), "WATCHDOG=1");
  server.Signal(SIGTERM);
  std::string message = receive();
  while (message == "WATCHDOG=1") message = receive();
  EXPECT_THAT(message, StartsWith("STOPPING=1\n"));
  EXPECT_EQ(server.Wait(), 0);
  close(manager);
}

// A graph that the server reads from a pipe holds its start up until the test has sent what it wants.
TEST_F(ProcessLifeTest, DuringTheStartAReloadIsKeptAndAStopEndsIt) {
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(LargeSum(), &json).ok());
  const std::string pipe = folder_.path() + "/sum.json";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const PrivateFolder files;
  const std::string config = files.Write("config", "limits { default_deadline_ms: 1000 }");
  const std::vector<std::string> flags = {"--listen=" + Target(), "--log-level=off", "--config=" + config,
                                          "--set=warm_up.graphs=" + pipe};
  {
    Process server(flags);
    {
      std::ofstream graph(pipe);  // opens when the server reads it
      files.Write("config", "limits { default_deadline_ms: 2000 }");
      server.Signal(SIGHUP);
      graph << json;
    }
    ASSERT_THAT(server.Line(), StartsWith("listening grpc"));
    const auto stub = Dial(Target());
    EXPECT_TRUE(WaitFor([&] {
      grpc::ClientContext context;
      v1::ServerInfo info;
      if (!stub->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok()) return false;
      for (const v1::Limit& limit : info.limits()) {
        if (limit.name() == "default_deadline_ms") return limit.value() == 2000;
      }
      return false;
    }));
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  Process server(flags);
  const std::ofstream graph(pipe);  // of which nothing ever comes
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Line(), "") << "it never was ready";
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_FALSE(fs::exists(folder_.path() + "/s")) << "the socket goes with the server";
}

TEST_F(ProcessLifeTest, WarmsUpAListBeforeItIsReady) {
  std::string json;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(LargeSum(), &json).ok());
  std::ofstream(folder_.path() + "/sum.json") << json;
  std::ofstream(folder_.path() + "/wrong.json") << "{\"nodes\": 1}";
  const std::string list = "warm_up.graphs=" + folder_.path();
  {
    InProcessServer server({list + "/sum.json"});
    v1::CompileRequest request;
    *request.mutable_graph() = LargeSum();
    request.mutable_options()->set_order(v1::MEMORY_ORDER_ROW_MAJOR);
    v1::CompileResponse response;
    ASSERT_TRUE(Compile(server.stub(), request, &response).ok());
    EXPECT_EQ(response.source(), v1::CompileResponse::SOURCE_MEMORY);
  }
  for (const char* wrong : {"/wrong.json", "/none.json", "/sum"}) {
    SCOPED_TRACE(wrong);
    Process server({"--listen=" + Target(), "--set=" + list + wrong});
    EXPECT_NE(server.Wait(), 0) << "a graph of the list must be there";
    InProcessServer lenient({list + wrong, "warm_up.required=false"});
  }
}

// The last calls stand on standard error, whatever the level of the log, and the process ends as it would have.
TEST_F(ProcessLifeTest, ACrashLeavesTheLastCalls) {
  std::vector<int> signals = {SIGABRT};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  signals.push_back(SIGSEGV);  // which sanitizers take for their own, and end the process otherwise
#endif
  for (const int signal : signals) {
    const std::string errors = folder_.path() + "/errors" + std::to_string(signal);
    Process server({"--listen=" + Target(), "--log-level=off", "--set=admin.listen=" + Target("admin")}, errors);
    EXPECT_THAT(server.Line(), StartsWith("listening grpc"));
    grpc::ClientContext context;
    context.AddMetadata("x-request-id", "the-last");
    v1::ServerInfo info;
    EXPECT_TRUE(Dial(Target())->GetServerInfo(&context, v1::GetServerInfoRequest(), &info).ok());
    // It is recorded when gRPC is done with it, which may be after its client is.
    const auto admin = v1::Admin::NewStub(grpc::CreateChannel(Target("admin"), grpc::InsecureChannelCredentials()));
    EXPECT_TRUE(WaitFor([&admin] {
      grpc::ClientContext asks;
      v1::DumpFlightRecorderResponse dump;
      EXPECT_TRUE(admin->DumpFlightRecorder(&asks, v1::DumpFlightRecorderRequest(), &dump).ok());
      return std::any_of(dump.entries().begin(), dump.entries().end(),
                         [](const v1::FlightEntry& entry) { return entry.request_id() == "the-last"; });
    }));
    server.Signal(signal);
    EXPECT_EQ(server.Wait(), 128 + signal);
    std::stringstream text;
    text << std::ifstream(errors).rdbuf();
    const std::string log = text.str();
    EXPECT_THAT(log, HasSubstr(R"("event":"flight","message":"listening?unix:)"));
    EXPECT_THAT(log, HasSubstr(R"("method":"GetServerInfo","code":0,"request_id":"the-last")"));
    EXPECT_THAT(log, HasSubstr(R"("event":"crash","signal":)" + std::to_string(signal) + "}\n"));
  }
}

}  // namespace
}  // namespace tensord
