// The C++ client's pipelines: the calls they carry, the reach of their failures, and every way in which they end.
#include "tensord/pipeline.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensord/client.h"
#include "tensord/messages.h"
#include "tests/e2e/server/breaking_proxy.h"
#include "tests/e2e/server/mebibyte.h"
#include "tests/e2e/server/session_client.h"
#include "tests/testlib/peers/client_values.h"

namespace tensord {
namespace {

using client::Argument;
using client::Client;
using client::ExecuteCall;
using client::HostTensor;
using client::PendingAnswer;
using client::Pipeline;
using client::ResultPlan;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// state + x, which is kept, and the sum of that, on f32[n].
v1::Graph Step() {
  return GraphOf(R"(
    inputs { name: "state" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
    inputs { name: "x" type { dtype: DTYPE_F32 shape { symbol: "n" } } }
    nodes { name: "next" inputs: "state" inputs: "x" binary: BINARY_OP_ADD }
    nodes { name: "sum" inputs: "next" reduce { kind: KIND_SUM dimensions: 0 } }
    outputs { name: "next" value: "next" } outputs { name: "sum" value: "sum" })");
}

v1::Graph Inverse() {
  return GraphOf(R"(
    inputs { name: "a" type { dtype: DTYPE_F64 shape { size: 2 } shape { size: 2 } } }
    nodes { name: "b" inputs: "a" extension { op { type_url: "type.googleapis.com/tensord.linalg.v1.Inverse" } } }
    outputs { name: "b" value: "b" })");
}

class PipelineTest : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& settings = {}) {
    server_ = std::make_unique<InProcessServer>(settings);
    Connect(server_->target());
    session_ = client_->OpenSession()->id();
    step_ = Compile(Step());
    twice_ = Compile(DoubleGraph());
    sum_ = Compile(LargeSum());
  }
  void Connect(const std::string& target) {
    auto client = Client::Connect({.target = target});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  std::string Compile(const v1::Graph& graph) {
    const auto compiled = client_->Compile(graph);
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    return compiled.ok() ? compiled->program().fingerprint() : "";
  }
  std::unique_ptr<Pipeline> Open(std::optional<absl::Duration> deadline = std::nullopt) {
    return client_->OpenPipeline({.session = session_, .deadline = deadline});
  }
  // One that an executor runs.
  ExecuteCall Sum() const { return {.fingerprint = sum_, .arguments = {Floats(16, 1)}}; }
  ExecuteCall Twice(const HostTensor& tensor) const { return {.fingerprint = twice_, .arguments = {tensor}}; }

  std::unique_ptr<InProcessServer> server_;
  std::unique_ptr<Client> client_;
  std::string session_, step_, twice_, sum_;
};

PendingAnswer Submit(Pipeline& pipeline, const ExecuteCall& call) {
  auto pending = pipeline.Submit(call);
  EXPECT_TRUE(pending.ok()) << pending.status();
  return *std::move(pending);
}

// The elements of a result, all of which are the same.
float ValueOf(PendingAnswer& pending, size_t output = 0) {
  const auto answer = pending.Wait();
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return -1;
  const auto values = answer->outputs.at(output).tensor->Values<float>();
  for (const float value : *values) EXPECT_EQ(value, values->front());
  return values->front();
}

TEST_F(PipelineTest, ALoopWithoutRoundTrips) {
  Start();
  ASSERT_TRUE(client_->PutTensor(session_, "state", Floats(5, 0)).ok());
  const auto pipeline = Open();
  std::vector<PendingAnswer> sums;
  sums.reserve(300);
  for (int i = 0; i < 300; ++i) {
    sums.push_back(Submit(*pipeline, {.fingerprint = step_,
                                      .arguments = {Argument::Donated("state"), Floats(5, 1)},
                                      .results = {ResultPlan::Keep("state")},
                                      .options = {.priority = 0, .profile = i == 0}}));
  }
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(ValueOf(sums[i], 1), 5.0f * static_cast<float>(i + 1));
  EXPECT_EQ(sums[0].Wait()->stats.device(), "cpu:0");
  EXPECT_GT(sums[0].Wait()->stats.message().segments_size(), 0);
  EXPECT_THAT(sums[0].Wait()->outputs[0].shape, ElementsAre(5));
  EXPECT_FALSE(sums[0].Wait()->outputs[0].tensor.has_value());
  EXPECT_TRUE(pipeline->Finish().ok());
  EXPECT_TRUE(pipeline->Finish().ok());
  EXPECT_THAT(*client_->GetTensor(session_, "state")->Values<float>(), Each(300));
  EXPECT_TRUE(absl::IsFailedPrecondition(pipeline->Submit(Sum()).status()));
  EXPECT_EQ(server_->Metric("tensord_rpc_started_total", "ExecuteStream"), 1);
}

TEST_F(PipelineTest, AnEmptyOneEndsWell) {
  Start();
  EXPECT_TRUE(Open()->Finish().ok());
  Open();
}

TEST_F(PipelineTest, GraphsGoThroughToo) {
  Start();
  const auto pipeline = client_->OpenPipeline();
  std::optional<PendingAnswer> pending;
  {
    const v1::Graph graph = DoubleGraph();
    pending = Submit(*pipeline, {.graph = &graph, .arguments = {Floats(7, 4)}});
  }
  EXPECT_EQ(ValueOf(*pending), 8);
}

TEST_F(PipelineTest, ResultsStayOrComeOrBothOrNeither) {
  Start();
  const auto pipeline = Open();
  PendingAnswer first = Submit(*pipeline, {.fingerprint = step_,
                                           .arguments = {Floats(3, 1), Floats(3, 2)},
                                           .results = {ResultPlan::Both("a"), ResultPlan::Discard()}});
  PendingAnswer second = Submit(*pipeline, {.fingerprint = step_,
                                            .arguments = {Argument::Handle("a"), Argument::Handle("a")},
                                            .results = {ResultPlan::Keep("b"), ResultPlan::Return()}});
  PendingAnswer third =
      Submit(*pipeline, {.fingerprint = twice_, .arguments = {Argument::Donated("b")}, .session = session_});
  PendingAnswer gone = Submit(*pipeline, {.fingerprint = twice_, .arguments = {Argument::Handle("b")}});
  EXPECT_EQ(ValueOf(first), 3);
  EXPECT_FALSE(first.Wait()->outputs[1].tensor.has_value());
  EXPECT_FALSE(second.Wait()->outputs[0].tensor.has_value());
  EXPECT_EQ(ValueOf(second, 1), 18);
  EXPECT_EQ(ValueOf(third), 12);
  EXPECT_EQ(ReasonOf(gone.Wait().status()), "HANDLE_UNKNOWN");
  EXPECT_TRUE(pipeline->Finish().ok()) << "somebody has asked about the failure";
}

TEST_F(PipelineTest, AFailureReachesWhatUsesItAndNothingElse) {
  Start();
  const v1::Graph inverse = Inverse();
  const v1::Graph negate = GraphOf(R"(
    inputs { name: "a" type { dtype: DTYPE_F64 shape { size: 2 } shape { size: 2 } } }
    nodes { name: "b" inputs: "a" unary: UNARY_OP_NEGATE }
    outputs { name: "b" value: "b" })");
  const HostTensor singular = *HostTensor::FromVector(std::vector<double>(4, 0.0), {2, 2});
  const auto pipeline = Open();
  PendingAnswer bad =
      Submit(*pipeline, {.graph = &inverse, .arguments = {singular}, .results = {ResultPlan::Keep("inverse")}});
  PendingAnswer dependent =
      Submit(*pipeline,
             {.graph = &negate, .arguments = {Argument::Handle("inverse")}, .results = {ResultPlan::Keep("negated")}});
  PendingAnswer further = Submit(*pipeline, {.graph = &negate, .arguments = {Argument::Handle("negated")}});
  PendingAnswer fine = Submit(*pipeline, {.graph = &negate, .arguments = {singular}});
  EXPECT_EQ(bad.Wait().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(bad.Wait().status()), "MATRIX_SINGULAR");
  for (PendingAnswer* poisoned : {&dependent, &further}) {
    EXPECT_EQ(poisoned->Wait().status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(ReasonOf(poisoned->Wait().status()), "HANDLE_POISONED");
    EXPECT_THAT(std::string(poisoned->Wait().status().message()), HasSubstr("MATRIX_SINGULAR"));
  }
  EXPECT_TRUE(fine.Wait().ok()) << fine.Wait().status();
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, FinishTellsTheFirstFailureThatNobodySaw) {
  Start();
  for (const bool is_late : {false, true}) {
    const auto pipeline = Open();
    std::optional<PendingAnswer> seen = Submit(*pipeline, {.fingerprint = std::string(64, '0')});
    std::optional<PendingAnswer> unseen =
        Submit(*pipeline, {.fingerprint = twice_, .arguments = {Argument::Handle("nothing")}});
    Submit(*pipeline, {.fingerprint = std::string(64, '0')});
    EXPECT_TRUE(!is_late || unseen->WaitUntil(absl::InfiniteFuture()));
    unseen.reset();
    EXPECT_EQ(ReasonOf(seen->Wait().status()), "PROGRAM_NOT_FOUND");
    EXPECT_EQ(ReasonOf(pipeline->Finish()), "HANDLE_UNKNOWN") << is_late;
  }
}

TEST_F(PipelineTest, LargeTensorsBothWays) {
  Start();
  const auto pipeline = Open();
  std::vector<PendingAnswer> pending;
  pending.reserve(4);
  for (int i = 0; i < 4; ++i) {
    pending.push_back(Submit(*pipeline, Twice(Floats(static_cast<size_t>(3 * kMiB), static_cast<float>(i)))));
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ValueOf(pending[static_cast<size_t>(i)]), 2.0f * static_cast<float>(i));
  EXPECT_EQ(pending[0].Wait()->outputs[0].tensor->bytes(), pending[0].Wait()->outputs[0].tensor->bytes())
      << "it is copied once";
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, ResultsThatNobodyReadsHoldUpNothing) {
  Start({"sessions.stream_requests=2", "sessions.stream_bytes=1000000"});
  const auto pipeline = Open();
  const HostTensor tensor = Floats(static_cast<size_t>(kMiB / 2), 1);  // 2 MiB: more than any window, both ways
  std::vector<PendingAnswer> pending;
  for (int i = 0; i < 100; ++i) {
    PendingAnswer answer = Submit(*pipeline, Twice(tensor));
    if (i % 10 == 0) pending.push_back(std::move(answer));
  }
  EXPECT_TRUE(pipeline->Finish().ok());
  for (PendingAnswer& answer : pending) EXPECT_EQ(ValueOf(answer), 2);
}

TEST_F(PipelineTest, SubmitWaitsUntilTheServerTakesMore) {
  Start({"cpu.executors=1", "sessions.stream_requests=1"});
  const auto pipeline = Open();
  const HostTensor tensor = Floats(static_cast<size_t>(kMiB / 4), 1);
  absl::Status last;
  {
    BlockedExecutor blocked(*server_);
    PendingAnswer first = Submit(*pipeline, Sum());
    std::thread sender([&] {
      // More than queue and windows hold together.
      for (int i = 0; i < 500 && last.ok(); ++i) last = pipeline->Submit(Twice(tensor)).status();
    });
    EXPECT_TRUE(WaitFor([&] { return server_->executor().stats().queued == 1; }));
    EXPECT_FALSE(first.WaitUntil(absl::InfinitePast()));
    pipeline->Cancel();
    sender.join();
    EXPECT_EQ(first.Wait().status().code(), absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(last.code(), absl::StatusCode::kCancelled) << last;
  EXPECT_EQ(pipeline->Finish().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(pipeline->Submit(Sum()).status().code(), absl::StatusCode::kCancelled);
  server_->WaitUntilIdle();
}

TEST_F(PipelineTest, TheDeadlineIsThatOfAll) {
  Start({"cpu.executors=1"});
  BlockedExecutor blocked(*server_);
  const auto pipeline = Open(absl::Milliseconds(50));
  std::vector<PendingAnswer> pending;
  for (int i = 0; i < 3; ++i) {
    auto submitted = pipeline->Submit(Sum());
    if (submitted.ok()) pending.push_back(*std::move(submitted));  // elsewhere the deadline has passed
  }
  for (PendingAnswer& answer : pending) {
    EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kDeadlineExceeded) << answer.Wait().status();
  }
  pipeline->Finish().IgnoreError();  // it ends
}

// Whatever is under way then.
TEST_F(PipelineTest, TheDeadlineEndsItAtAnyMoment) {
  Start();
  const HostTensor large = Floats(160, 1);
  for (int round = 0; round < 2000; ++round) {
    const auto pipeline = Open(absl::Microseconds(round * 7 % 5000));
    for (int i = 0; i < 5; ++i) pipeline->Submit(Twice(large)).IgnoreError();
    for (int i = 0; i < 5; ++i) {
      auto answer = pipeline->Submit(Twice(large));
      if (answer.ok()) answer->Wait().IgnoreError();
    }
    pipeline->Finish().IgnoreError();
  }
}

TEST_F(PipelineTest, WhatCannotBeSentIsRefusedAndTheRestGoesOn) {
  Start();
  const auto pipeline = Open();
  EXPECT_EQ(pipeline->Submit({}).status().code(), absl::StatusCode::kInvalidArgument);
  ExecuteCall hurried = Sum();
  hurried.options.deadline = absl::Seconds(1);
  EXPECT_THAT(std::string(pipeline->Submit(hurried).status().message()), HasSubstr("PipelineOptions::deadline"));
  PendingAnswer fine = Submit(*pipeline, Sum());
  EXPECT_EQ(ValueOf(fine), 4096);
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, ItsEndCancelsWhatIsUnanswered) {
  Start({"cpu.executors=1"});
  {
    BlockedExecutor blocked(*server_);
    auto pipeline = Open();
    std::vector<PendingAnswer> pending;
    pending.reserve(10);
    for (int i = 0; i < 10; ++i) pending.push_back(Submit(*pipeline, Sum()));
    EXPECT_TRUE(WaitFor([&] { return server_->executor().stats().queued > 0; }));
    pipeline.reset();
    for (PendingAnswer& answer : pending) {
      EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kCancelled);
      EXPECT_THAT(std::string(answer.Wait().status().message()), HasSubstr(server_->target()));
    }
  }
  server_->WaitUntilIdle();
  EXPECT_TRUE(WaitFor([&] { return server_->parts().gate->snapshot().bytes == 0; }));
}

TEST_F(PipelineTest, EndsThatMeetARequestLoseNothing) {
  Start();
  for (int i = 0; i < 200; ++i) {
    auto pipeline = Open();
    PendingAnswer answer = Submit(*pipeline, Sum());
    if (i % 3 == 0) std::this_thread::yield();
    if (i % 2 == 0) pipeline->Cancel();
    pipeline.reset();
    const absl::Status status = answer.Wait().status();
    EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
  }
  server_->WaitUntilIdle();
}

TEST_F(PipelineTest, OutlivesItsClient) {
  Start();
  const auto pipeline = Open();
  client_.reset();
  PendingAnswer answer = Submit(*pipeline, Sum());
  EXPECT_EQ(ValueOf(answer), 4096);
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(PipelineTest, ABrokenConnectionFailsWhatIsUnanswered) {
  Start({"cpu.executors=1"});
  const std::string path = server_->socket_path() + "-proxy";
  BreakingProxy proxy(path, server_->socket_path(), {});
  Connect("unix:" + path);
  BlockedExecutor blocked(*server_);
  const auto pipeline = Open();
  PendingAnswer first = Submit(*pipeline, Sum()), second = Submit(*pipeline, Sum());
  EXPECT_TRUE(WaitFor([&] { return server_->executor().stats().queued == 2; }));
  proxy.Break();
  for (PendingAnswer* answer : {&first, &second}) {
    const absl::Status status = answer->Wait().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("unix:" + path + " ended with 2 calls unanswered"));
  }
  EXPECT_EQ(pipeline->Submit(Sum()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pipeline->Finish().code(), absl::StatusCode::kUnavailable);
}

TEST_F(PipelineTest, WhereNobodyListensTheAnswerSaysSo) {
  Start();
  const std::string target = server_->target();
  server_->RequestStop();
  server_->WaitUntilStopped();
  const auto pipeline = Open();
  auto submitted = pipeline->Submit(Sum());
  const absl::Status status = submitted.ok() ? submitted->Wait().status() : submitted.status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr(target));
}

TEST_F(PipelineTest, AServerThatDrainsAnswersWhatItHas) {
  Start({"cpu.executors=1"});
  BlockedExecutor blocked(*server_);
  const auto pipeline = Open();
  PendingAnswer answer = Submit(*pipeline, Sum());
  EXPECT_TRUE(WaitFor([&] { return server_->executor().stats().queued == 1; }));
  server_->RequestStop();
  EXPECT_TRUE(WaitFor([&] { return server_->parts().gate->snapshot().state == server::ServingState::kDraining; }));
  blocked.Release();
  EXPECT_EQ(ValueOf(answer), 4096);
  const absl::Status end = pipeline->Finish();
  EXPECT_EQ(end.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(end), "SERVER_DRAINING");
  server_->WaitUntilStopped();
}

TEST_F(PipelineTest, ThreadsShareOne) {
  Start();
  const auto pipeline = Open();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::string name = "state" + std::to_string(t);
      ASSERT_TRUE(client_->PutTensor(session_, name, Floats(9, static_cast<float>(t))).ok());
      std::optional<PendingAnswer> last;
      for (int i = 0; i < 50; ++i) {
        last = Submit(*pipeline, {.fingerprint = step_,
                                  .arguments = {Argument::Donated(name), Floats(9, 1)},
                                  .results = {ResultPlan::Keep(name)}});
      }
      EXPECT_EQ(ValueOf(*last, 1), 9.0f * static_cast<float>(t + 50));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(pipeline->Finish().ok());
}

}  // namespace
}  // namespace tensord
