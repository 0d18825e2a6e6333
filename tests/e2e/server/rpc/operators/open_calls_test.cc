// Operators see the calls in progress and end them, with tensordctl.
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/tensordctl_call.h"
#include "tests/testlib/tls/private_folder.h"

namespace tensord {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// x on f32[16], broadcast to [16, 2^36] and summed: as long as nobody ends it.
v1::Graph EndlessSum() {
  return GraphOf(R"(
    name: "endless"
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 16 } } }
    nodes { name: "wide" inputs: "x"
            broadcast_in_dim { shape { size: 16 } shape { size: 68719476736 } broadcast_dimensions: 0 } }
    nodes { name: "exp" inputs: "wide" unary: UNARY_OP_EXP }
    nodes { name: "sum" inputs: "exp" reduce { kind: KIND_SUM dimensions: 1 } }
    outputs { name: "sum" value: "sum" })");
}

class OpenCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (HasHostCuda()) GTEST_SKIP() << "the endless sum is one kernel there, which ends by itself alone";
  }
  std::vector<std::string> Settings() const {
    return {"identity.file=" + folder_.PathOf("callers"), "admin.listen=unix:" + folder_.PathOf("admin"),
            "cpu.executors=1", "limits.default_deadline_ms=3600000"};
  }
  cli::Outcome Tensordctl(std::vector<std::string> words) const {
    words.push_back("--admin=unix:" + folder_.PathOf("admin"));
    words.push_back("--token-file=" + folder_.PathOf("operator"));
    return cli::CallTensordctl(words);
  }
  // Runs the graph for the holder of the token. The reason of its refusal, or "OK".
  static std::future<grpc::Status> Run(InProcessServer& server, const std::string& token, const v1::Graph& graph) {
    return std::async(std::launch::async, [&server, token, graph] {
      const auto stub = v1::Compute::NewStub(server.Dial());
      grpc::ClientContext context;
      context.AddMetadata("authorization", "Bearer " + token);
      context.AddMetadata("x-request-id", "of-" + token);
      v1::ExecuteResponse response;
      return stub->Execute(&context, RequestOf(graph, {FloatTensor(std::vector<float>(16, 1), {16})}), &response);
    });
  }
  // The line of the list that has all of these; empty if there is none.
  std::string LineWith(const std::vector<std::string>& words) const {
    const cli::Outcome calls = Tensordctl({"calls"});
    EXPECT_EQ(calls.status, cli::kExitOk) << calls.err;
    for (const absl::string_view line : absl::StrSplit(calls.out, '\n')) {
      bool has_all = !line.empty();
      for (const std::string& word : words) has_all &= absl::StrContains(line, word);
      if (has_all) return std::string(line);
    }
    return "";
  }
  std::string AwaitLineWith(const std::vector<std::string>& words) const {
    std::string line;
    EXPECT_TRUE(WaitFor([&] { return !(line = LineWith(words)).empty(); }));
    return line;
  }
  static std::string Role(const std::string& tenant, const std::string& roles, const std::string& token) {
    return absl::StrCat(tenant, " ", roles, " ", Fingerprint::Of(token).ToHex(), "\n");
  }

  const PrivateFolder folder_;
  const std::string callers_ =
      folder_.Write("callers", Role("team-a", "execute,read", "token-a") + Role("team-b", "execute,read", "token-b") +
                                   Role("operators", "execute,admin", "token-o"));
  const std::string operator_ = folder_.Write("operator", "token-o");
};

// One tenant's run holds the device, another's waits for it: who it is can be told, and ended.
TEST_F(OpenCallsTest, WhoHoldsTheDeviceIsSeenAndEnded) {
  InProcessServer server(Settings());
  std::future<grpc::Status> endless = Run(server, "token-a", EndlessSum());
  const std::string holder = AwaitLineWith({"team-a", "compute"});
  EXPECT_THAT(holder, ContainsRegex(absl::StrCat("Execute .*compute .*team-a .*[0-9a-f]{12} .*cpu:0 .*unix:pid=",
                                                 getpid(), ",uid=", getuid(), " .*of-token-a")));
  std::future<grpc::Status> waits = Run(server, "token-b", LargeSum());
  EXPECT_THAT(AwaitLineWith({"team-b", "queue"}), HasSubstr("of-token-b"));

  const std::string id(absl::string_view(holder).substr(0, holder.find(' ')));
  const cli::Outcome cancelled = Tensordctl({"calls", "--cancel=" + id});
  EXPECT_EQ(cancelled.status, cli::kExitOk) << cancelled.err;
  EXPECT_EQ(cancelled.out, "cancelled " + id + "\n");
  const grpc::Status ended = endless.get();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_THAT(ended.error_message(), HasSubstr("an operator ended the call"));
  EXPECT_TRUE(waits.get().ok()) << "the device is free";
  EXPECT_TRUE(WaitFor([&] { return LineWith({"team-"}).empty(); }));
  EXPECT_THAT(Tensordctl({"calls", "--cancel=" + id}).err, HasSubstr("CALL_UNKNOWN"));
}

TEST_F(OpenCallsTest, AProgramIsExplainedByWhatTheListSaysOfIt) {
  InProcessServer server(Settings());
  std::future<grpc::Status> endless = Run(server, "token-a", EndlessSum());
  const std::string line = AwaitLineWith({"team-a", "compute"});
  const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  ASSERT_GT(words.size(), 5u);
  const std::string token = folder_.Write("token-o", "token-o");
  const auto explain = [&](const std::string& operand) {
    return cli::CallTensordctl({"explain", operand, "--target=" + server.target(), "--token-file=" + token});
  };
  const cli::Outcome explained = explain(words[5]);
  EXPECT_EQ(explained.status, cli::kExitOk) << explained.err;
  EXPECT_THAT(explained.out, HasSubstr("endless"));
  EXPECT_THAT(explain(words[5].substr(0, 4)).out, HasSubstr("endless"));
  EXPECT_THAT(explain("0123456789abcdef").err, HasSubstr("PROGRAM_NOT_FOUND"));
  Tensordctl({"calls", "--cancel=" + words[0]});
  EXPECT_EQ(endless.get().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(OpenCallsTest, StreamsAndWhatTheyWaitForEndToo) {
  InProcessServer server(Settings());
  const auto stub = v1::Compute::NewStub(server.Dial());
  grpc::ClientContext idle, working, uploading;
  for (grpc::ClientContext* context : {&idle, &working, &uploading}) {
    context->AddMetadata("authorization", "Bearer token-a");
  }
  const auto silent = stub->ExecuteStream(&idle);
  const auto stream = stub->ExecuteStream(&working);
  v1::ExecuteRequest request = RequestOf(EndlessSum(), {FloatTensor(std::vector<float>(16, 1), {16})});
  request.set_request_id(7);
  ASSERT_TRUE(stream->Write(request));
  v1::PutTensorResponse uploaded;
  const auto upload = stub->PutTensor(&uploading, &uploaded);
  EXPECT_THAT(AwaitLineWith({"ExecuteStream", "compute"}), AllOf(HasSubstr("/7"), HasSubstr("(of a stream)")));
  AwaitLineWith({"PutTensor", "receive"});
  // The request first, and with it its stream; then whatever is left.
  std::string line;
  while (!(line = LineWith({"team-a"})).empty()) {
    Tensordctl({"calls", absl::StrCat("--cancel=", line.substr(0, line.find(' ')))});
  }
  for (const grpc::Status& status : {silent->Finish(), stream->Finish(), upload->Finish()}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(OpenCallsTest, TheListIsForOperatorsAndBounded) {
  InProcessServer server(Settings());
  std::future<grpc::Status> endless = Run(server, "token-a", EndlessSum());
  const std::string line = AwaitLineWith({"team-a", "compute"});
  const auto admin =
      v1::Admin::NewStub(grpc::CreateChannel("unix:" + folder_.PathOf("admin"), grpc::InsecureChannelCredentials()));
  const auto list = [&](const std::string& token, v1::ListCallsRequest request, v1::ListCallsResponse* response) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    return ReasonOf(admin->ListCalls(&context, request, response));
  };
  v1::ListCallsRequest one;
  one.set_limit(1);
  v1::ListCallsResponse response;
  EXPECT_EQ(list("token-a", one, &response), "PERMISSION_DENIED");
  // The run, and this very call; the calls before it leave the list a moment after their answers.
  EXPECT_TRUE(WaitFor([&] { return list("token-o", one, &response) == "OK" && response.count() == 2; }))
      << response.ShortDebugString();
  EXPECT_EQ(response.calls_size(), 1);
  one.set_tenant("team-b");
  ASSERT_EQ(list("token-o", one, &response), "OK");
  EXPECT_EQ(response.count(), 0);
  one.set_limit(-1);
  EXPECT_EQ(list("token-o", one, &response), "MALFORMED_MESSAGE");
  EXPECT_THAT(Tensordctl({"calls", "--cancel=nonsense"}).err, HasSubstr("MALFORMED_MESSAGE"));
  EXPECT_THAT(Tensordctl({"calls", "--tenant=team-b"}).out, Not(HasSubstr("team-a")));
  Tensordctl({"calls", "--cancel=" + line.substr(0, line.find(' '))});
  endless.wait();
}

TEST_F(OpenCallsTest, ASessionOfAnyTenantIsEnded) {
  InProcessServer server({"admin.listen=unix:" + folder_.PathOf("admin")});
  SessionClient session(server);
  EXPECT_EQ(session.Put("x", {1, 2, 3}), "OK");
  EXPECT_THAT(Tensordctl({"sessions"}).out, HasSubstr(session.id()));
  const cli::Outcome closed = Tensordctl({"sessions", "--close=" + session.id()});
  EXPECT_EQ(closed.out, "closed " + session.id() + "\n") << closed.err;
  EXPECT_EQ(session.Put("x", {1, 2, 3}), "SESSION_UNKNOWN");
  EXPECT_THAT(Tensordctl({"sessions", "--close=" + session.id()}).err, HasSubstr("SESSION_UNKNOWN"));
  EXPECT_TRUE(NothingIsLeft(server));
}

}  // namespace
}  // namespace tensord
