// Every call of the client, the operators' client and the load program ends, whatever the transport does: here one of
// its steps never comes back.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "clients/load/load_run.h"
#include "clients/load/workload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/admin_client.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/client_values.h"
#include "tests/testlib/peers/lost_step.h"

namespace tensord {
namespace {

using client::AdminClient;
using client::Client;
using client::HostTensor;

constexpr LostStep kNone = LostStep::NUM_INTERCEPTION_HOOKS;
constexpr absl::Duration kDeadline = absl::Milliseconds(200);
// Far beyond what a call may take, and below what ctest waits.
constexpr std::chrono::seconds kForever(60);

// The step lost by calls that begin from now on.
std::atomic<LostStep> lost_step = kNone;

class LosesFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo* /*info*/) override {
    return new LosesStep(lost_step);
  }
};

using Calls = std::map<std::string, std::function<absl::Status()>>;

// Returns the end of each of the calls, all made at the same time. The process ends if one does not end.
std::map<std::string, absl::StatusCode> EndsOf(const Calls& calls) {
  std::map<std::string, std::future<absl::StatusCode>> ends;
  for (const auto& [name, call] : calls) {
    std::packaged_task<absl::StatusCode()> task([call = call] { return call().code(); });
    ends[name] = task.get_future();
    std::thread(std::move(task)).detach();
  }
  std::map<std::string, absl::StatusCode> codes;
  bool is_over = true;
  for (auto& [name, end] : ends) {
    const bool has_ended = end.wait_for(kForever) == std::future_status::ready;
    EXPECT_TRUE(has_ended) << name << " waits for ever";
    is_over = is_over && has_ended;
    if (has_ended) codes[name] = end.get();
  }
  if (!is_over) {
    std::fflush(nullptr);
    std::_Exit(1);
  }
  return codes;
}

Calls CallsOf(Client& client, const v1::Graph& graph, const std::string& session) {
  const auto large = std::make_shared<HostTensor>(Floats(size_t{3} << 20, 1));
  return {
      {"CheckHealth", [&] { return client.CheckHealth("").status(); }},
      {"CloseSession", [&client, session] { return client.CloseSession(session); }},
      {"Compile", [&] { return client.Compile(graph).status(); }},
      {"DeleteTensors", [&client, session] { return client.DeleteTensors(session, {"x"}).status(); }},
      {"Execute", [&] { return client.Execute(graph, {Floats(3, 1)}).status(); }},
      {"Explain", [&] { return client.Explain(graph).status(); }},
      {"GetProgram", [&] { return client.GetProgram(std::string(64, '0')).status(); }},
      {"GetServerInfo", [&] { return client.GetServerInfo().status(); }},
      {"GetTensor", [&client, session] { return client.GetTensor(session, "x").status(); }},
      {"OpenSession", [&] { return client.OpenSession().status(); }},
      {"PutTensor", [&client, session] { return client.PutTensor(session, "y", Floats(3, 1)); }},
      {"PutTensor, a large one", [&client, session, large] { return client.PutTensor(session, "z", *large); }},
  };
}

Calls CallsOf(AdminClient& admin) {
  return {
      {"CallRaw", [&] { return admin.CallRaw("/grpc.channelz.v1.Channelz/GetServers", "").status(); }},
      {"CaptureProfile", [&] { return admin.CaptureProfile({}).status(); }},
      {"ListCalls", [&] { return admin.ListCalls({}).status(); }},
      {"ListPrograms", [&] { return admin.ListPrograms().status(); }},
      {"ListSessions", [&] { return admin.ListSessions().status(); }},
  };
}

class LostStepsTest : public testing::TestWithParam<LostStep> {
 protected:
  static void SetUpTestSuite() {
    static LosesFactory factory;
    [[maybe_unused]] static const bool is_set =
        (grpc::experimental::RegisterGlobalClientInterceptorFactory(&factory), true);
  }
  ~LostStepsTest() override { lost_step = kNone; }

  TemporaryFolder folder_;
  InProcessServer server_{{"admin.listen=unix:" + folder_.path() + "/admin"}};
};

TEST_P(LostStepsTest, CallsOfTheClientEnd) {
  const auto client = Client::Connect({.target = server_.target(), .deadline = kDeadline, .shared_memory = false});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto session = (*client)->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*client)->PutTensor(session->id(), "x", Floats(3, 1)).ok());
  const v1::Graph graph = DoubleGraph();
  lost_step = GetParam();
  for (const auto& [name, code] : EndsOf(CallsOf(**client, graph, session->id()))) {
    EXPECT_EQ(code, absl::StatusCode::kDeadlineExceeded) << name;
  }
}

TEST_P(LostStepsTest, CallsOfTheOperatorsEnd) {
  const auto admin = AdminClient::Connect({.target = "unix:" + folder_.path() + "/admin", .deadline = kDeadline});
  ASSERT_TRUE(admin.ok()) << admin.status();
  lost_step = GetParam();
  for (const auto& [name, code] : EndsOf(CallsOf(**admin))) {
    EXPECT_EQ(code, absl::StatusCode::kDeadlineExceeded) << name;
  }
}

TEST_P(LostStepsTest, ConnectingToNothingEnds) {
  lost_step = GetParam();
  const std::string nothing = "unix:" + folder_.path() + "/nothing";
  const Calls calls = {
      {"Client", [&] { return Client::Connect({.target = nothing, .connect_timeout = kDeadline}).status(); }},
      {"AdminClient", [&] { return AdminClient::Connect({.target = nothing, .connect_timeout = kDeadline}).status(); }},
  };
  for (const auto& [name, code] : EndsOf(calls)) EXPECT_EQ(code, absl::StatusCode::kUnavailable) << name;
}

TEST_P(LostStepsTest, ARunOfLoadEnds) {
  const auto client = Client::Connect({.target = server_.target()});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto workload = load::BuiltInWorkload("tiny", std::nullopt, client::DType::kF32);
  ASSERT_TRUE(workload.ok()) << workload.status();
  auto prepared = load::Prepare(**client, *workload, 1, {});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const std::atomic<bool> is_interrupted = true;  // it is short, and so is its drain
  const load::LoadPlan plan = {.connection = {.target = server_.target()},
                               .workloads = {*std::move(prepared)},
                               .threads = 2,
                               .concurrency = 5,
                               .interrupted = &is_interrupted};
  lost_step = GetParam();
  const auto unfinished = std::make_shared<int64_t>(0);
  const auto codes = EndsOf({{"RunLoad", [&plan, unfinished] {
                                const absl::StatusOr<load::LoadResult> result = load::RunLoad(plan);
                                if (result.ok()) *unfinished = result->workloads.at(0).unfinished;
                                return result.status();
                              }}});
  EXPECT_THAT(codes, testing::ElementsAre(testing::Pair("RunLoad", absl::StatusCode::kOk)));
  EXPECT_EQ(*unfinished, 5);
}

INSTANTIATE_TEST_SUITE_P(Steps, LostStepsTest, testing::Values(LostStep::PRE_SEND_MESSAGE, LostStep::POST_RECV_STATUS),
                         [](const testing::TestParamInfo<LostStep>& step) {
                           return step.param == LostStep::PRE_SEND_MESSAGE ? "SentMessage" : "ReceivedStatus";
                         });

}  // namespace
}  // namespace tensord
