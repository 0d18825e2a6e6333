// The order of calls, and the calls refused before work is done.
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "backends/cpu/cpu_backend.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/server/host_cuda_device.h"
#include "tests/e2e/server/in_process_server.h"
#include "tests/e2e/server/session_client.h"

namespace tensord {
namespace {

const std::vector<v1::Tensor>& Ones() {
  static const auto* const ones = new std::vector<v1::Tensor>{FloatTensor(std::vector<float>(16, 1), {16})};
  return *ones;
}

// One executor, and what keeps it from running anything.
class SchedulingTest : public ::testing::Test {
 protected:
  static std::vector<std::string> With(std::vector<std::string> settings) {
    settings.push_back("cpu.executors=1");
    return settings;
  }

  void Start(const std::vector<std::string>& settings = {}) {
    server_ = std::make_unique<InProcessServer>(With(settings));
    warm_ = WarmRequest(server_->stub(), LargeSum(), Ones());
    program_ = *server_->parts().cache->Find(*Fingerprint::FromHex(warm_.fingerprint()));
  }

  // A run that did not come by the wire, of another tenant.
  void SubmitAs(
      const std::string& tenant, int32_t priority, std::function<void()> done = [] {}) {
    RunRequest run;
    run.program = program_;
    run.tenant = tenant;
    run.priority = priority;
    const auto ones = std::make_shared<std::vector<float>>(16, 1.0f);
    run.arguments = {{{DType::kF32, {16}}, std::shared_ptr<const void>(ones, ones->data())}};
    run.done = [done = std::move(done)](const absl::StatusOr<RunOutcome>&) { done(); };
    ASSERT_TRUE(server_->executor().Submit(std::move(run)).ok());
  }

  // A call that must be answered well.
  std::thread Call(const v1::ExecuteRequest& request) {
    const int64_t before = server_->executor().stats().queued;
    std::thread call([this, request] {
      v1::ExecuteResponse response;
      const grpc::Status status = Execute(server_->stub(), request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
    });
    EXPECT_TRUE(WaitFor([&] { return server_->executor().stats().queued == before + 1; }));
    return call;
  }

  // The deadline is beyond the patience of the queue, a minute, in which a run with an earlier one would go first.
  v1::ErrorDetail Refused(const v1::ExecuteRequest& request, absl::Duration deadline = absl::Minutes(5)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + deadline));
    v1::ExecuteResponse response;
    return DetailOf(server_->stub().Execute(&context, request, &response));
  }

  std::unique_ptr<InProcessServer> server_;
  v1::ExecuteRequest warm_;
  CompiledProgramPtr program_;
};

// Holds the executor from when its run has been answered until it is opened.
class Hold {
 public:
  std::function<void()> AsDone() {
    return [this] {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return open_; });
      done_ = true;
      changed_.notify_all();
    };
  }
  void Open() {
    std::unique_lock<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return done_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool done_ = false;
};

TEST_F(SchedulingTest, AHigherPriorityRunsFirst) {
  Start({"scheduling.ageing_ms=86400000"});
  BlockedExecutor blocked(*server_);
  std::thread ordinary = Call(warm_);
  Hold hold;
  SubmitAs("default", 1, hold.AsDone());
  v1::ExecuteRequest urgent = warm_;
  urgent.set_priority(2);
  std::thread first = Call(urgent);
  EXPECT_EQ(server_->Metric("tensord_queue_depth", "highest"), 1);
  EXPECT_EQ(server_->Metric("tensord_queue_depth", "high"), 1);
  EXPECT_EQ(server_->Metric("tensord_queue_depth", "ordinary"), 1);
  EXPECT_GT(server_->Metric("tensord_queue_oldest_age_seconds", "cpu:0"), 0);
  blocked.Release();
  first.join();  // before the run that holds the executor
  EXPECT_EQ(server_->executor().stats().queued_by_class[2], 1);
  hold.Open();
  ordinary.join();
}

TEST_F(SchedulingTest, NobodyGetsMoreThanTheMostPriority) {
  Start({"scheduling.ageing_ms=86400000", "scheduling.max_priority=0"});
  BlockedExecutor blocked(*server_);
  v1::ExecuteRequest urgent = warm_;
  urgent.set_priority(2);
  std::thread call = Call(urgent);
  EXPECT_EQ(server_->executor().stats().queued_by_class[2], 1);
  blocked.Release();
  call.join();
}

TEST_F(SchedulingTest, ATenantDoesNotStarveAnother) {
  Start({"scheduling.ageing_ms=86400000"});
  BlockedExecutor blocked(*server_);
  Hold hold;
  for (int i = 0; i < 2; ++i) SubmitAs("greedy", 0);
  SubmitAs("greedy", 0, hold.AsDone());
  for (int i = 0; i < 20; ++i) SubmitAs("greedy", 0);
  std::thread modest = Call(warm_);
  blocked.Release();
  modest.join();  // before the third run of the greedy one, which holds the executor
  hold.Open();
  EXPECT_TRUE(WaitFor([this] { return server_->executor().stats().queued == 0; }));
}

TEST_F(SchedulingTest, WhatIsCancelledInTheQueueIsAnsweredAtOnce) {
  Start();
  BlockedExecutor blocked(*server_);
  grpc::ClientContext context;
  std::thread waiting([&] {
    v1::ExecuteResponse response;
    EXPECT_EQ(server_->stub().Execute(&context, warm_, &response).error_code(), grpc::StatusCode::CANCELLED);
  });
  EXPECT_TRUE(WaitFor([this] { return server_->executor().stats().queued == 1; }));
  context.TryCancel();
  waiting.join();
  // While the executor is still busy.
  EXPECT_TRUE(WaitFor([this] { return server_->executor().stats().queued == 0; }));
  server_->WaitUntilIdle();
}

TEST_F(SchedulingTest, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  Start();
  BlockedExecutor blocked(*server_);
  program_->NoteRunTime({}, absl::Hours(1));
  SubmitAs("default", 0);
  const v1::ErrorDetail detail = Refused(warm_, absl::Minutes(5));
  EXPECT_EQ(detail.reason(), "DEADLINE_UNREACHABLE");
  EXPECT_GT(detail.retry_after().seconds(), 0);
  EXPECT_TRUE(
      WaitFor([this] { return server_->Metric("tensord_admission_rejected_total", "deadline_unreachable") == 1; }));
}

TEST_F(SchedulingTest, ALongWaitIsRefused) {
  Start({"scheduling.max_wait_ms=1000"});
  BlockedExecutor blocked(*server_);
  program_->NoteRunTime({}, absl::Seconds(5));
  SubmitAs("default", 0);
  const v1::ErrorDetail detail = Refused(warm_);
  EXPECT_EQ(detail.reason(), "QUEUE_FULL");
  EXPECT_EQ(detail.limit(), "scheduling.max_wait_ms");
  EXPECT_EQ(detail.limit_value(), 1000);
  EXPECT_EQ(detail.actual_value(), 5000);
  EXPECT_EQ(detail.retry_after().seconds(), 4);
}

// Sizes that the arguments decide are known as soon as these are.
TEST_F(SchedulingTest, RunsOfProgramsWithOpenSizesAreExpectedToTakeTheirTimeToo) {
  Start();
  const std::vector<ConcreteType> large = {{DType::kF32, {16}}}, small = {{DType::kF32, {8}}};
  v1::CompileRequest compile;
  *compile.mutable_graph() = DoubleGraph();
  v1::CompileResponse compiled;
  ASSERT_TRUE(Compile(server_->stub(), compile, &compiled).ok());
  program_ = *server_->parts().cache->Find(*Fingerprint::FromHex(compiled.program().fingerprint()));
  program_->NoteRunTime(large, absl::Hours(2));
  EXPECT_EQ(program_->expected_time(large), absl::ZeroDuration()) << "the first run was bound, too";
  program_->NoteRunTime(large, absl::Hours(1));
  EXPECT_EQ(program_->expected_time(large), absl::Hours(1));
  EXPECT_EQ(program_->expected_time(small), absl::ZeroDuration());
  EXPECT_EQ(program_->expected_time({}), absl::ZeroDuration());
  BlockedExecutor blocked(*server_);
  SubmitAs("default", 0);
  const v1::ErrorDetail detail = Refused(warm_, absl::Minutes(5));
  EXPECT_EQ(detail.reason(), "DEADLINE_UNREACHABLE");
  EXPECT_GT(detail.retry_after().seconds(), 0);
}

TEST_F(SchedulingTest, AFullQueueNamesItsLimitAndWhenToTryAgain) {
  Start({"cpu.queue_length=4", "scheduling.tenant_queue_percent=50"});
  BlockedExecutor blocked(*server_);
  SubmitAs("default", 0);
  SubmitAs("default", 0);
  v1::ErrorDetail detail = Refused(warm_);
  EXPECT_EQ(detail.reason(), "QUEUE_FULL");
  EXPECT_EQ(detail.limit(), "scheduling.tenant_queue_percent");
  EXPECT_EQ(detail.limit_value(), 2);
  EXPECT_EQ(detail.actual_value(), 3);
  SubmitAs("other", 0);
  SubmitAs("other", 0);
  detail = Refused(warm_);
  EXPECT_EQ(detail.limit(), "cpu.queue_length");
  EXPECT_EQ(detail.limit_value(), 4);
  EXPECT_EQ(detail.actual_value(), 5);
  EXPECT_GT(detail.retry_after().nanos(), 0);
  EXPECT_TRUE(WaitFor([this] { return server_->Metric("tensord_admission_rejected_total", "queue_full") == 2; }));
}

// A request that would be refused in the end is refused before it is read; one that might not be is read.
TEST_F(SchedulingTest, WhileAQueueIsFullRequestsAreRefusedUnread) {
  Start({"cpu.queue_length=1"});
  const v1::ExecuteRequest tiny = WarmRequest(server_->stub(), SmallAdd(), {Ones()[0], Ones()[0]});
  v1::ExecuteRequest without_arguments = warm_;
  without_arguments.clear_arguments();
  {
    BlockedExecutor blocked(*server_);
    EXPECT_EQ(Refused(without_arguments).reason(), "ARGUMENT_COUNT");
    SubmitAs("default", 0);
    const v1::ErrorDetail read = Refused(warm_), unread = Refused(warm_);
    EXPECT_EQ(read.limit(), "cpu.queue_length");
    EXPECT_EQ(unread.SerializeAsString(), read.SerializeAsString());
    EXPECT_EQ(Refused(without_arguments).reason(), "QUEUE_FULL");
    v1::ExecuteRequest of_session = warm_;
    of_session.set_session("none");
    EXPECT_EQ(Refused(of_session).reason(), "SESSION_UNKNOWN");
    v1::ExecuteRequest unknown = warm_;
    unknown.set_fingerprint(std::string(64, '0'));
    EXPECT_EQ(Refused(unknown).reason(), "PROGRAM_NOT_FOUND");
    v1::ExecuteResponse response;
    if (!HasHostCuda()) {
      EXPECT_TRUE(Execute(server_->stub(), tiny, &response).ok()) << "it does not wait for the executor";
    }
    EXPECT_TRUE(WaitFor([this] { return server_->Metric("tensord_admission_rejected_total", "queue_full") == 3; }));
  }
  // Once what waited has left the queue.
  EXPECT_TRUE(WaitFor([this] {
    v1::ExecuteResponse response;
    return Execute(server_->stub(), warm_, &response).ok();
  }));
}

TEST_F(SchedulingTest, TheRateOfATenantIsBounded) {
  Start({"scheduling.tenant_requests_per_second=1", "scheduling.tenant_burst=2"});  // one call compiled the program
  v1::ErrorDetail detail;
  for (int i = 0; i < 100 && detail.reason().empty(); ++i) detail = Refused(warm_);
  EXPECT_EQ(detail.reason(), "RATE_LIMITED");
  EXPECT_EQ(detail.limit(), "scheduling.tenant_requests_per_second");
  EXPECT_EQ(detail.limit_value(), 1);
  EXPECT_GT(detail.retry_after().seconds() * 1000000000 + detail.retry_after().nanos(), 0);
  EXPECT_TRUE(WaitFor([this] { return server_->Metric("tensord_admission_rejected_total", "rate") >= 1; }));
}

TEST_F(SchedulingTest, WhatNeverFitsIntoMemoryIsRefused) {
  Start({"cpu.memory_bytes=100"});
  const v1::ErrorDetail detail = Refused(warm_);
  EXPECT_EQ(detail.reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(detail.limit(), "cpu.memory_bytes");
  EXPECT_EQ(detail.limit_value(), 100);
  EXPECT_EQ(detail.actual_value(), *program_->static_peak_bytes());
  EXPECT_TRUE(WaitFor([this] { return server_->Metric("tensord_admission_rejected_total", "memory") == 1; }));
}

// A run that needs more than the bound of runs, even if there is as much, is refused before it takes any.
TEST_F(SchedulingTest, MemoryIsBoundedByDefault) {
  Start({"limits.tensor_bytes=72057594037927936", "sessions.device_bytes=72057594037927936"});
  const int64_t most = MostCpuTensorBytes() / 10 * 9;
  EXPECT_EQ(server_->Metric("tensord_limit", "cpu.memory_bytes"), static_cast<double>(most));
  v1::Graph graph = GraphOf(R"(
    inputs { name: "x" type { dtype: DTYPE_F32 shape { size: 16 } } }
    nodes { name: "wide" inputs: "x" broadcast_in_dim { shape { size: 16 } shape { size: 0 } broadcast_dimensions: 0 } }
    outputs { name: "y" value: "wide" })");
  graph.mutable_nodes(0)->mutable_broadcast_in_dim()->mutable_shape(1)->set_size(most / 64 + 1);
  SessionClient session(*server_);
  v1::ExecuteRequest request = session.Request(graph);
  *request.add_arguments()->mutable_tensor() = FloatTensor(std::vector<float>(16, 1), {16});
  Keep(&request, "y");
  const v1::ErrorDetail detail = Refused(request);
  EXPECT_EQ(detail.reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(detail.limit(), "cpu.memory_bytes");
  EXPECT_EQ(detail.limit_value(), most);
  EXPECT_GT(detail.actual_value(), most);
}

TEST_F(SchedulingTest, RunsThatDoNotFitTogetherRunOneAfterTheOther) {
  Start();
  const int64_t bytes = *program_->static_peak_bytes();
  server_.reset();
  program_.reset();
  server_ = std::make_unique<InProcessServer>(
      std::vector<std::string>{"cpu.executors=4", "cpu.memory_bytes=" + std::to_string(2 * bytes - 1)});
  std::vector<std::thread> calls;
  for (int client = 0; client < 8; ++client) {
    calls.emplace_back([this, bytes] {
      for (int i = 0; i < 10; ++i) {
        v1::ExecuteResponse response;
        EXPECT_TRUE(Execute(server_->stub(), RequestOf(LargeSum(), Ones()), &response).ok());
        EXPECT_LE(server_->executor().stats().promised_bytes, 2 * bytes - 1);
      }
    });
  }
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(server_->executor().stats().promised_bytes, 0);
  EXPECT_EQ(server_->executor().stats().completed, 80);
}

// So many bytes of resident tensors, until the session is closed.
std::shared_ptr<server::Session> Occupy(InProcessServer& server, int64_t bytes) {
  const auto session = server.parts().sessions->Open("default", absl::Hours(1));
  EXPECT_TRUE(session.ok());
  const server::ResidentType type = {.device = "cpu:0", .type = {DType::kBool, {bytes}}, .order = Order::kColumnMajor};
  EXPECT_TRUE((*session)->StartUpload("large", type, server.executor().backend()).ok());
  return *session;
}

TEST_F(SchedulingTest, ResidentTensorsTakeMemoryFromRuns) {
  Start();
  const int64_t bytes = *program_->static_peak_bytes();
  program_.reset();
  Start({"cpu.memory_bytes=" + std::to_string(bytes + 10000)});
  EXPECT_EQ(Refused(warm_).reason(), "");
  auto session = Occupy(*server_, 10001);
  const v1::ErrorDetail detail = Refused(warm_);
  EXPECT_EQ(detail.reason(), "OUT_OF_MEMORY");
  EXPECT_EQ(detail.limit(), "cpu.memory_bytes");
  EXPECT_EQ(detail.limit_value(), bytes + 10000);
  EXPECT_EQ(detail.actual_value(), bytes + 10001);
  EXPECT_EQ(server_->Metric("tensord_resident_bytes", "cpu:0"), 10001);
  EXPECT_TRUE(server_->parts().sessions->Close("default", session->id()).ok());
  session.reset();
  EXPECT_TRUE(WaitFor([this] { return server_->parts().sessions->stats().devices["cpu:0"].bytes == 0; }));
  EXPECT_EQ(Refused(warm_).reason(), "");

  // One that waits already does not hold up those after it.
  BlockedExecutor blocked(*server_);
  std::thread waiting([this] { EXPECT_EQ(Refused(warm_).reason(), "OUT_OF_MEMORY"); });
  EXPECT_TRUE(WaitFor([this] { return server_->executor().stats().queued == 1; }));
  session = Occupy(*server_, 10001);
  blocked.Release();
  waiting.join();
}

TEST_F(SchedulingTest, WhatARunReadsAndKeepsIsNotCountedTwice) {
  Start();
  constexpr int64_t kElements = 100000;
  const std::vector<ConcreteType> types = {{DType::kF32, {kElements}}};
  v1::CompileRequest compile;
  *compile.mutable_graph() = DoubleGraph();
  v1::CompileResponse compiled;
  ASSERT_TRUE(Compile(server_->stub(), compile, &compiled).ok());
  program_ = *server_->parts().cache->Find(*Fingerprint::FromHex(compiled.program().fingerprint()));
  const int64_t bytes = *program_->PeakBytes(types);
  program_.reset();
  Start({"cpu.memory_bytes=" + std::to_string(bytes)});
  SessionClient session(*server_);
  EXPECT_EQ(session.Put("x", std::vector<float>(kElements, 1)), "OK");
  v1::ExecuteRequest request = session.Request(DoubleGraph());
  AddHandle(&request, "x");
  Keep(&request, "y");
  EXPECT_EQ(session.Run(request), "OK");
  EXPECT_EQ(session.Run(session.Request(DoubleGraph())), "ARGUMENT_COUNT");
  v1::ExecuteRequest another = session.Request(DoubleGraph());
  AddHandle(&another, "x");
  EXPECT_EQ(session.Run(another), "OUT_OF_MEMORY") << "a result for which nothing is left beside x and y";
}

}  // namespace
}  // namespace tensord
