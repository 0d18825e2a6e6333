// Programs that end the server, and the servers after it.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/server_process.h"
#include "tests/plugin/crash_op.h"
#include "tests/testlib/peers/tensordctl_call.h"

namespace tensord {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::Graph CrashGraph(int64_t how, bool when_made = false) {
  // The fields of the message, in the escapes of the text form.
  const std::string op = absl::StrCat(how == 0 ? "" : absl::StrCat("\\010\\00", how), when_made ? "\\020\\001" : "");
  return GraphOf(absl::StrCat(
      "inputs { name: 'x' type { dtype: DTYPE_F32 shape { size: 4 } } } nodes { name: 'y' inputs: 'x' extension { "
      "op { type_url: 'type.googleapis.com/crash.v1.Crash' value: '",
      op, "' } } } outputs { name: 'y' value: 'y' }"));
}

v1::Tensor Four(float value) { return FloatTensor(std::vector<float>(4, value), {4}); }

// A server with the plugin and a folder of programs, one after the other.
class QuarantineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(Process::BinaryPath().empty()) << "the environment variable TENSORD_BINARY names the server's binary";
  }
  ~QuarantineTest() override {
    server_.reset();
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove_all(entry.path());
  }

  std::string Target() const { return "unix:" + folder_.path() + "/s"; }
  std::string Programs() const { return folder_.path() + "/programs"; }

  void Start(const std::vector<std::string>& settings = {}) {
    const char* const plugins = std::getenv("TENSORD_PLUGINS");
    std::vector<std::string> flags = {
        "--listen=" + Target(),
        "--set=admin.listen=unix:" + folder_.path() + "/admin",
        "--set=metrics=127.0.0.1:0",
        "--set=cpu.threads=3",
        "--set=program_cache.disk_path=" + Programs(),
        "--set=families.plugins=" + std::string(plugins == nullptr ? "" : plugins) + "/crash_plugin.so"};
    flags.insert(flags.end(), settings.begin(), settings.end());
    server_.reset();
    server_ = std::make_unique<Process>(flags, Log());
    ASSERT_THAT(server_->Line(), StartsWith("listening grpc")) << LogText();
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Compute::NewStub(grpc::CreateCustomChannel(Target(), grpc::InsecureChannelCredentials(), arguments));
  }
  void Stop() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait(), 0);
  }

  std::string Log() const { return folder_.path() + "/log"; }
  std::string LogText() const {
    std::stringstream text;
    text << std::ifstream(Log()).rdbuf();
    return text.str();
  }

  bool IsOnDisk(const std::string& fingerprint) const {
    const auto entries = fs::recursive_directory_iterator(Programs());
    return std::any_of(begin(entries), end(entries), [&](const fs::directory_entry& entry) {
      return entry.path().filename() == fingerprint + ".program";
    });
  }

  // Its fingerprint, once the program is on disk too.
  std::string Compiled(const v1::Graph& graph) {
    v1::CompileRequest request;
    *request.mutable_graph() = graph;
    v1::CompileResponse response;
    const grpc::Status status = Compile(*stub_, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(WaitFor([&] { return IsOnDisk(response.program().fingerprint()); }));
    return response.program().fingerprint();
  }
  grpc::Status Run(const v1::Graph& graph, float value) {
    v1::ExecuteResponse response;
    return Execute(*stub_, RequestOf(graph, {Four(value)}), &response);
  }
  grpc::Status Run(const std::string& fingerprint, float value) {
    v1::ExecuteRequest request = RequestOf(v1::Graph(), {Four(value)});
    request.set_fingerprint(fingerprint);
    v1::ExecuteResponse response;
    return Execute(*stub_, request, &response);
  }
  cli::Outcome Ctl(std::vector<std::string> words) const {
    words.push_back("--admin=unix:" + folder_.path() + "/admin");
    return cli::CallTensordctl(words);
  }
  // How often that program began to run on this server.
  int64_t RunsOf(const std::string& fingerprint) const {
    const auto admin = v1::Admin::NewStub(
        grpc::CreateChannel("unix:" + folder_.path() + "/admin", grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ListProgramsResponse programs;
    EXPECT_TRUE(admin->ListPrograms(&context, v1::ListProgramsRequest(), &programs).ok());
    for (const v1::ProgramEntry& entry : programs.programs()) {
      if (entry.program().fingerprint() == fingerprint) return entry.run_count();
    }
    return 0;
  }
  // Expects that the running program ends the server by that signal.
  void ExpectEnd(const grpc::Status& status, int signal) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
    if (status.error_code() != grpc::StatusCode::UNAVAILABLE) return Stop();
    EXPECT_EQ(server_->Wait(), 128 + signal);
  }
  // That the program is refused, whichever way it is asked for.
  void ExpectQuarantined(const v1::Graph& graph, const std::string& fingerprint, const std::string& why) {
    for (const grpc::Status& status : {Run(graph, 0), Run(fingerprint, 0)}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
      EXPECT_EQ(DetailOf(status).reason(), "QUARANTINED") << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr(why));
    }
  }

  TemporaryFolder folder_;
  std::unique_ptr<Process> server_;
  std::unique_ptr<v1::Compute::Stub> stub_;
};

// A program that must not suffer from others.
v1::Graph Innocent() { return LargeSum(3); }
v1::Tensor Sixteen() { return FloatTensor(std::vector<float>(16, 2), {16}); }

struct Way {
  crash::How how;
  int signal;
};

TEST_F(QuarantineTest, WhatCrashesInAKernelIsRefusedByTheNextServerAndOthersAreServed) {
  const std::vector<Way> ways = {{crash::kDivides, SIGFPE},
                                 {crash::kWrites, SIGSEGV},
                                 {crash::kAborts, SIGABRT},
                                 {crash::kRecurses, SIGSEGV},
                                 {crash::kHelpers, SIGSEGV}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.how);
    Start();
    const v1::Graph graph = CrashGraph(way.how);
    const std::string fingerprint = Compiled(graph);
    v1::ExecuteResponse response;
    EXPECT_TRUE(Execute(*stub_, RequestOf(Innocent(), {Sixteen()}), &response).ok());
    EXPECT_TRUE(Run(fingerprint, 0).ok()) << "harmless with these arguments";
    ExpectEnd(Run(fingerprint, 1), way.signal);
    EXPECT_THAT(LogText(), HasSubstr("\"fingerprint\":\"" + fingerprint + "\",\"work\":\"run\""));
    Start();
    ExpectQuarantined(graph, fingerprint, "was running when SIG");
    EXPECT_TRUE(Execute(*stub_, RequestOf(Innocent(), {Sixteen()}), &response).ok());
    EXPECT_THAT(LogText(), AllOf(HasSubstr("program in quarantine"), HasSubstr(fingerprint)));
    const cli::Outcome listed = Ctl({"programs"});
    EXPECT_THAT(listed.out, HasSubstr(fingerprint.substr(0, 12) + "  quarantine"));
    EXPECT_THAT(listed.out, HasSubstr(absl::StrCat("signal ", way.signal, " in its run, 2")));
    Stop();
    // Not once, but until it is released.
    Start();
    ExpectQuarantined(graph, fingerprint, "was running when SIG");
    EXPECT_EQ(Ctl({"programs", "--release", fingerprint.substr(0, 12)}).out, "released 1\n");
    EXPECT_TRUE(Run(fingerprint, 0).ok()) << "it is still on disk";
    EXPECT_THAT(Ctl({"programs"}).out, Not(HasSubstr("quarantine")));
    Stop();
  }
}

TEST_F(QuarantineTest, WhatCrashesWhileItIsCompiledIsRefused) {
  const v1::Graph graph = CrashGraph(crash::kDivides, /*when_made=*/true);
  Start();
  const std::string fingerprint = Compiled(graph);
  Stop();
  fs::remove_all(Programs());
  setenv(crash::kCrashesWhenMade, "1", 1);
  Start();
  ExpectEnd(Run(graph, 0), SIGFPE);
  Start();
  ExpectQuarantined(graph, fingerprint, "was being compiled when SIGFPE");
  EXPECT_EQ(Ctl({"programs", "--release", "--all"}).out, "released 1\n");
  ExpectEnd(Run(graph, 0), SIGFPE);
  unsetenv(crash::kCrashesWhenMade);
  Start();
  ExpectQuarantined(graph, fingerprint, "was being compiled when SIGFPE");
  Stop();
}

// Programs on disk that a server with other settings does not survive.
TEST_F(QuarantineTest, WhatCrashesAtTheStartDoesNotEndTheNextOne) {
  const v1::Graph graph = CrashGraph(crash::kWrites, /*when_made=*/true);
  Start();
  const std::string fingerprint = Compiled(graph);
  v1::ExecuteResponse response;
  EXPECT_TRUE(Execute(*stub_, RequestOf(Innocent(), {Sixteen()}), &response).ok());
  Stop();
  std::ofstream(folder_.path() + "/graph.pb") << graph.SerializeAsString();
  setenv(crash::kCrashesWhenMade, "1", 1);
  const char* const plugins = std::getenv("TENSORD_PLUGINS");
  {
    Process dies({"--listen=" + Target(), "--set=program_cache.disk_path=" + Programs(),
                  "--set=families.plugins=" + std::string(plugins) + "/crash_plugin.so"},
                 Log());
    EXPECT_EQ(dies.Line(), "");
    EXPECT_EQ(dies.Wait(), 128 + SIGSEGV);
  }
  Start({"--set=warm_up.graphs=" + folder_.path() + "/graph.pb", "--set=warm_up.order=column"});
  // It listens before it warms up.
  EXPECT_TRUE(WaitFor([&] { return absl::StrContains(LogText(), "graph not warmed up"); }));
  EXPECT_THAT(LogText(), HasSubstr("program not restored"));
  Stop();
  unsetenv(crash::kCrashesWhenMade);
  Start();
  ExpectQuarantined(graph, fingerprint, "was being brought back from disk when SIGSEGV");
  EXPECT_TRUE(Execute(*stub_, RequestOf(Innocent(), {Sixteen()}), &response).ok());
  Stop();
}

TEST_F(QuarantineTest, OnlyTheCulpritIsRefusedWhereItIsKnownAndAllWhereItIsNot) {
  const v1::Graph waits = CrashGraph(crash::kWaits), crashes = CrashGraph(crash::kAborts);
  Start();
  const std::string waiting = Compiled(waits), crashing = Compiled(crashes);
  const auto run_both = [&](bool crash) {
    const int64_t before = RunsOf(waiting);
    auto first = std::async(std::launch::async, [&] { return Run(waiting, 1); });
    EXPECT_TRUE(WaitFor([&] { return RunsOf(waiting) > before; }));
    if (crash) {
      ExpectEnd(Run(crashing, 1), SIGABRT);
    } else {
      server_->Signal(SIGSEGV);
      EXPECT_EQ(server_->Wait(), 128 + SIGSEGV);
    }
    EXPECT_FALSE(first.get().ok());
  };
  run_both(true);
  Start();
  ExpectQuarantined(crashes, crashing, "was running when SIGABRT");
  EXPECT_TRUE(Run(waiting, 0).ok()) << "it was only there";
  EXPECT_EQ(Ctl({"programs", "--release", "--all"}).out, "released 1\n");
  run_both(false);
  Start();
  ExpectQuarantined(waits, waiting, "beside others perhaps");
  EXPECT_TRUE(Run(crashing, 0).ok()) << "it was not at work";
  EXPECT_THAT(Ctl({"programs"}).out, HasSubstr("signal 11 during its run"));
  Stop();
}

TEST_F(QuarantineTest, WhatAnOperatorSendsToStopAServerPutsNothingThere) {
  Start();
  const std::string waiting = Compiled(CrashGraph(crash::kWaits));
  auto run = std::async(std::launch::async, [&] { return Run(waiting, 1); });
  EXPECT_TRUE(WaitFor([&] { return RunsOf(waiting) == 1; }));
  server_->Signal(SIGKILL);
  EXPECT_EQ(server_->Wait(), 128 + SIGKILL);
  EXPECT_FALSE(run.get().ok());
  Start();
  EXPECT_TRUE(Run(waiting, 0).ok());
  EXPECT_FALSE(fs::exists(Programs() + "/quarantine"));
  Stop();
}

}  // namespace
}  // namespace tensord
