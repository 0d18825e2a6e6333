#include "engine/runtime/devices/device_executor.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "engine/base/steady_time.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/executor_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/engine/runtime/gated_backend.h"
#include "tests/unit/engine/runtime/temporary_folder.h"

namespace tensord {
namespace {

using testing::HasSubstr;

struct RunAnswer {
  int run = 0;
  std::string reason;  // of a refusal; empty where the run went well
  std::string message;
  float value = 0;  // the first of the result
};

DeviceExecutor::Options Options(int workers, int64_t max_queued) {
  return {.workers = workers, .max_queued = max_queued};
}

class DeviceExecutorTest : public testing::Test {
 protected:
  DeviceExecutorTest() : program_(CompileDouble()) {}

  CompiledProgramPtr CompileDouble() {
    absl::StatusOr<Graph> graph = ParseGraph(R"(graph "double" {
      %x = input : f32[2]
      %y = add(%x, %x)
      output "y" = %y
    })",
                                             CoreRegistry());
    const auto program = Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), &backend_);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }

  // The run number `run` doubles it.
  RunRequest Request(int run) {
    auto bytes = std::make_shared<std::vector<float>>(2, static_cast<float>(run));
    RunTensor argument{.type = {.dtype = DType::kF32, .shape = {2}}};
    argument.bytes = std::shared_ptr<const void>(bytes, bytes->data());
    RunRequest request{.program = program_, .arguments = {std::move(argument)}};
    request.done = [this, run](absl::StatusOr<RunOutcome> outcome) {
      RunAnswer answer{.run = run};
      if (outcome.ok()) {
        answer.value = static_cast<const float*>(outcome->results.at(0).bytes.get())[0];
      } else {
        answer.reason = ReasonOf(outcome.status());
        answer.message = std::string(outcome.status().message());
      }
      answers_.Put(std::move(answer));
    };
    return request;
  }

  // The next run stops before its first kernel until gate_ is set.
  void CloseGate() {
    backend_.before_run = [this] {
      started_.Set();
      gate_.Wait();
    };
  }

  GatedBackend backend_;
  CompiledProgramPtr program_;
  Event started_, gate_;
  Inbox<RunAnswer> answers_;
};

TEST_F(DeviceExecutorTest, OneWorkerAnswersInOrder) {
  CloseGate();
  {
    DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
    for (int run = 0; run < 10; ++run) EXPECT_TRUE(executor.Submit(Request(run)).ok());
    started_.Wait();
    EXPECT_EQ(executor.stats().running, 1);
    EXPECT_EQ(executor.stats().queued, 9);
    gate_.Set();
    const std::vector<RunAnswer> answers = answers_.WaitFor(10);
    for (int run = 0; run < 10; ++run) {
      EXPECT_EQ(answers[static_cast<size_t>(run)].run, run);
      EXPECT_EQ(answers[static_cast<size_t>(run)].reason, "");
      EXPECT_EQ(answers[static_cast<size_t>(run)].value, 2.0f * static_cast<float>(run));
    }
    EXPECT_EQ(executor.stats().completed, 10);
    EXPECT_EQ(executor.stats().running, 0);
    EXPECT_EQ(executor.stats().failed, 0);
  }
  program_.reset();
  EXPECT_EQ(backend_.live_buffers(), 0);
}

TEST_F(DeviceExecutorTest, SeveralWorkersRunAtOnce) {
  std::atomic<int> inside{0};
  backend_.before_run = [&] {
    if (++inside == 3) gate_.Set();  // only three runs at once open the gate
    gate_.Wait();
  };
  DeviceExecutor executor("gated:0", &backend_, Options(3, 100));
  EXPECT_EQ(executor.workers(), 3);
  EXPECT_FALSE(executor.TenantShares().has_value()) << "of what has no bound";
  for (int run = 0; run < 30; ++run) EXPECT_TRUE(executor.Submit(Request(run)).ok());
  for (const RunAnswer& answer : answers_.WaitFor(30)) EXPECT_EQ(answer.value, 2.0f * static_cast<float>(answer.run));
  const std::vector<absl::Duration> busy = executor.stats().busy;
  ASSERT_EQ(busy.size(), 3u);
  for (const absl::Duration worker : busy) EXPECT_GT(worker, absl::ZeroDuration());
}

TEST_F(DeviceExecutorTest, WhatNobodyWaitsForIsNotTaken) {
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  RunRequest late = Request(1), cancelled = Request(2);
  late.deadline = absl::Now() - absl::Nanoseconds(1);
  const auto token = std::make_shared<CancelToken>();
  token->Cancel();
  cancelled.cancel = token;
  EXPECT_EQ(ReasonOf(executor.Submit(std::move(late))), "DEADLINE_EXCEEDED");
  EXPECT_EQ(ReasonOf(executor.Submit(std::move(cancelled))), "CANCELLED");
  ASSERT_TRUE(executor.Submit(Request(3)).ok());
  EXPECT_EQ(answers_.WaitFor(1)[0].run, 3);
}

// A neighbour died of it while it waited.
TEST_F(DeviceExecutorTest, WhatComesIntoQuarantineInTheQueueDoesNotRun) {
  const TemporaryFolder folder;
  const auto quarantine = Quarantine::Open({.folder = folder.path(), .version = "1"});
  ASSERT_TRUE(quarantine.ok()) << quarantine.status();
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  for (int run = 0; run < 2; ++run) {
    RunRequest request = Request(run);
    request.quarantine = quarantine->get();
    ASSERT_TRUE(executor.Submit(std::move(request)).ok());
  }
  started_.Wait();
  std::filesystem::create_directory((*quarantine)->path());
  std::ofstream((*quarantine)->path() + "/" + program_->fingerprint().ToHex() + ".crash");
  (*quarantine)->Look();
  gate_.Set();
  const std::vector<RunAnswer> answers = answers_.WaitFor(2);
  EXPECT_EQ(answers[0].reason, "");
  EXPECT_EQ(answers[1].reason, "QUARANTINED");
}

// The only worker is busy all the while.
TEST_F(DeviceExecutorTest, WhatIsCancelledOrExpiresInTheQueueIsAnsweredAtOnce) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  RunRequest late = Request(1), cancelled = Request(2), kept = Request(3);
  kept.deadline = absl::Now() + absl::Hours(1);
  const auto token = std::make_shared<CancelToken>();
  cancelled.cancel = token;
  kept.cancel = std::make_shared<CancelToken>();
  ASSERT_TRUE(executor.Submit(std::move(kept)).ok());
  ASSERT_TRUE(executor.Submit(std::move(cancelled)).ok());
  token->Cancel();
  EXPECT_EQ(answers_.WaitFor(1)[0].reason, "CANCELLED");
  late.deadline = absl::Now() + absl::Milliseconds(500);
  ASSERT_TRUE(executor.Submit(std::move(late)).ok());
  EXPECT_EQ(answers_.WaitFor(2)[1].reason, "DEADLINE_EXCEEDED");
  EXPECT_EQ(executor.stats().queued, 1);
  gate_.Set();
  const std::vector<RunAnswer> answers = answers_.WaitFor(4);
  EXPECT_EQ(answers[2].run, 0);
  EXPECT_EQ(answers[3].run, 3);
  EXPECT_EQ(executor.stats().failed, 2);
}

TEST_F(DeviceExecutorTest, TokensOutliveTheExecutor) {
  const auto token = std::make_shared<CancelToken>();
  {
    CloseGate();
    std::optional<DeviceExecutor> executor(std::in_place, "gated:0", &backend_, Options(1, 100));
    for (int run = 0; run < 3; ++run) {
      RunRequest request = Request(run);
      request.cancel = token;
      ASSERT_TRUE(executor->Submit(std::move(request)).ok());
    }
    started_.Wait();
    std::thread stopping([&executor] { executor.reset(); });
    answers_.WaitFor(2);
    gate_.Set();
    stopping.join();
  }
  token->Cancel();
  EXPECT_EQ(answers_.size(), 3u);
}

TEST_F(DeviceExecutorTest, HigherPrioritiesRunFirstAndTenantsTakeTurns) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  const auto submit = [&](int run, const char* tenant, int32_t priority) {
    RunRequest request = Request(run);
    request.tenant = tenant;
    request.priority = priority;
    ASSERT_TRUE(executor.Submit(std::move(request)).ok());
  };
  submit(1, "greedy", 0);
  submit(2, "greedy", 0);
  submit(3, "modest", 0);
  submit(4, "greedy", -1);
  submit(5, "greedy", 7);
  EXPECT_EQ(executor.stats().queued_by_class, (std::array<int64_t, 5>{0, 1, 3, 0, 1}));
  EXPECT_GT(executor.stats().oldest_wait, absl::ZeroDuration());
  gate_.Set();
  std::vector<int> order;
  for (const RunAnswer& answer : answers_.WaitFor(6)) order.push_back(answer.run);
  EXPECT_EQ(order[1], 5);
  EXPECT_EQ(order[2], 1);
  EXPECT_EQ(order[3], 3) << "the other tenant's turn";
  EXPECT_EQ(order[4], 2);
  EXPECT_EQ(order[5], 4);
}

TEST_F(DeviceExecutorTest, ATenantGetsOnlyItsPartOfTheQueue) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .max_queued = 3, .max_queued_per_tenant = 2});
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  const auto submit = [&](const char* tenant) {
    RunRequest request = Request(1);
    request.tenant = tenant;
    return executor.Submit(std::move(request));
  };
  EXPECT_TRUE(submit("greedy").ok());
  EXPECT_TRUE(submit("greedy").ok());
  const RefusalDetail share = *DetailOf(submit("greedy"));
  EXPECT_EQ(share.reason, "QUEUE_FULL");
  EXPECT_EQ(share.limit, "scheduling.tenant_queue_percent");
  EXPECT_EQ(share.limit_value, 2);
  EXPECT_EQ(share.actual_value, 3);
  EXPECT_GT(share.retry_after, absl::ZeroDuration());
  EXPECT_TRUE(submit("modest").ok());
  const std::map<std::string, double> shares = *executor.TenantShares();
  EXPECT_EQ(shares, (std::map<std::string, double>{{"greedy", 1}, {"modest", 0.5}}));
  EXPECT_EQ(executor.stats().queued_bytes, 3 * 8);
  EXPECT_EQ(DetailOf(submit("third"))->limit, "gated.queue_length");
  gate_.Set();
  answers_.WaitFor(4);
}

TEST_F(DeviceExecutorTest, IsNotFullOfWhatCanHaveNoMemory) {
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .max_queued = 100, .memory_bytes = 1});
  EXPECT_EQ(ReasonOf(executor.CheckRoom(Request(0))), "OUT_OF_MEMORY");
  EXPECT_LT(executor.last_full(), absl::Now() - absl::Hours(1));
}

TEST_F(DeviceExecutorTest, TheSameRefusalIsMadeOnce) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, Options(1, 1));
  EXPECT_LT(executor.last_full(), absl::Now() - absl::Hours(1));
  program_->NoteRunTime({}, absl::Seconds(10));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  ASSERT_TRUE(executor.Submit(Request(1)).ok());
  const absl::Time before = SteadyNow();
  const absl::Status first = executor.CheckRoom(Request(2));
  EXPECT_EQ(DetailOf(first)->retry_after, absl::Seconds(5)) << "half of what waits";
  EXPECT_GE(executor.last_full(), absl::FromUnixNanos(absl::ToUnixNanos(before)));
  EXPECT_EQ(executor.CheckRoom(Request(3)).message().data(), first.message().data());
  executor.SetBounds({.max_queued = 0});
  EXPECT_EQ(DetailOf(executor.CheckRoom(Request(4)))->limit_value, 0) << "not while another limit holds";
  gate_.Set();
  answers_.WaitFor(2);
  EXPECT_EQ(DetailOf(executor.CheckRoom(Request(5)))->actual_value, 1);
  EXPECT_EQ(DetailOf(executor.CheckRoom(Request(6)))->retry_after, absl::Milliseconds(1)) << "nor when less waits";
}

TEST_F(DeviceExecutorTest, ADeadlineThatCannotBeMetIsRefusedAtOnce) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .max_queued = 100, .max_wait = absl::Seconds(250)});
  program_->NoteRunTime({}, absl::Seconds(100));
  const auto within = [&](absl::Duration time) {
    RunRequest request = Request(1);
    request.deadline = absl::Now() + time;
    return executor.CheckRoom(request);
  };
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  EXPECT_TRUE(within(absl::Seconds(1)).ok()) << "nothing waits before it";
  RunRequest first = Request(1);
  first.deadline = absl::Now() + absl::Seconds(30);
  ASSERT_TRUE(executor.Submit(std::move(first)).ok());
  const RefusalDetail late = *DetailOf(within(absl::Seconds(190)));
  EXPECT_EQ(late.reason, "DEADLINE_UNREACHABLE");
  EXPECT_GT(late.retry_after, absl::ZeroDuration());
  EXPECT_TRUE(within(absl::Seconds(400)).ok());
  EXPECT_TRUE(within(absl::Seconds(20)).ok()) << "due before the other one";
  RunRequest second = Request(2);
  second.deadline = absl::Now() + absl::Hours(1);
  ASSERT_TRUE(executor.Submit(std::move(second)).ok());
  const RefusalDetail waits = *DetailOf(within(absl::Hours(2)));
  EXPECT_EQ(waits.reason, "QUEUE_FULL");
  EXPECT_EQ(waits.limit, "scheduling.max_wait_ms");
  EXPECT_EQ(waits.limit_value, 250000);
  EXPECT_GT(waits.actual_value, 250000) << "what runs takes its time too";
  EXPECT_LE(waits.actual_value, 300000);
  gate_.Set();
  const std::vector<RunAnswer> answers = answers_.WaitFor(3);
  EXPECT_EQ(answers[1].run, 1);
  EXPECT_EQ(answers[1].reason, "DEADLINE_EXCEEDED") << "it would end too late, and another waits";
  EXPECT_EQ(answers[2].reason, "");
  EXPECT_LT(program_->expected_time({}), absl::Seconds(100)) << "what was measured since counts";
}

// The queue is never empty, so that no run is taken to show how long it takes.
TEST_F(DeviceExecutorTest, AMeanThatKeepsRunsOutFalls) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .max_queued = 100, .ageing = absl::Hours(1)});
  const CompiledProgramPtr quick = program_, spoilt = CompileDouble();
  quick->NoteRunTime({}, absl::Seconds(10));
  spoilt->NoteRunTime({}, absl::Seconds(1000));
  const auto within = [&](absl::Duration time) {
    RunRequest request = Request(2);
    request.program = spoilt;
    request.deadline = absl::Now() + time;
    return ReasonOf(executor.CheckRoom(request));
  };
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  RunRequest in_vain = Request(1);
  in_vain.program = spoilt;
  in_vain.priority = 2;
  in_vain.deadline = absl::Now() + absl::Seconds(500);
  ASSERT_TRUE(executor.Submit(std::move(in_vain)).ok());
  EXPECT_EQ(within(absl::Seconds(900)), "DEADLINE_UNREACHABLE");
  EXPECT_EQ(spoilt->expected_time({}), absl::Seconds(1000)) << "there would not even be time to wait";
  int refused = 0;
  while (refused < 1000 && within(absl::Seconds(1500)) == "DEADLINE_UNREACHABLE") ++refused;
  EXPECT_GT(refused, 10) << "a short deadline spoils no mean either";
  EXPECT_LT(refused, 200);
  const absl::Duration before = spoilt->expected_time({});
  EXPECT_GT(before, absl::Seconds(200));
  ASSERT_TRUE(executor.Submit(Request(3)).ok());
  gate_.Set();
  EXPECT_EQ(answers_.WaitFor(3)[1].reason, "DEADLINE_EXCEEDED") << "another waits, and it is expected to end too late";
  EXPECT_LT(spoilt->expected_time({}), before);
}

TEST_F(DeviceExecutorTest, ALongRunOnOneWorkerIsNotAWaitForTheOther) {
  std::atomic<int> inside{0};
  backend_.before_run = [&] {
    if (++inside == 2) started_.Set();
    gate_.Wait();
  };
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100, .max_wait = absl::Seconds(400)});
  const CompiledProgramPtr quick = program_, slow = CompileDouble();
  quick->NoteRunTime({}, absl::Seconds(10));
  slow->NoteRunTime({}, absl::Hours(1));
  const auto within = [&](absl::Duration time) {
    RunRequest request = Request(1);
    request.deadline = absl::Now() + time;
    return executor.CheckRoom(request);
  };
  RunRequest long_run = Request(0);
  long_run.program = slow;
  ASSERT_TRUE(executor.Submit(std::move(long_run)).ok());
  for (int run = 1; run <= 10; ++run) ASSERT_TRUE(executor.Submit(Request(run)).ok());
  started_.Wait();
  EXPECT_EQ(ReasonOf(within(absl::Seconds(70))), "DEADLINE_UNREACHABLE") << "nine wait, for one worker";
  EXPECT_TRUE(within(absl::Seconds(200)).ok());
  while (executor.Submit(Request(11)).ok()) {
  }
  EXPECT_EQ(DetailOf(within(absl::Hours(2)))->limit, "scheduling.max_wait_ms");
  const int64_t queued = executor.stats().queued;
  EXPECT_GE(queued, 40);
  EXPECT_LE(queued, 42);
  gate_.Set();
  answers_.WaitFor(static_cast<size_t>(queued) + 2);
}

TEST_F(DeviceExecutorTest, ARunStartsWhenItsMemoryFits) {
  const int64_t bytes = *program_->static_peak_bytes();
  std::atomic<int> inside{0};
  backend_.before_run = [&] {
    ++inside;
    started_.Set();
    gate_.Wait();
  };
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100, .memory_bytes = 2 * bytes - 1});
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  const auto token = std::make_shared<CancelToken>();
  RunRequest held = Request(1);
  held.cancel = token;
  ASSERT_TRUE(executor.Submit(std::move(held)).ok());
  ASSERT_TRUE(executor.Submit(Request(2)).ok());
  EXPECT_EQ(executor.stats().promised_bytes, bytes);
  token->Cancel();
  EXPECT_EQ(answers_.WaitFor(1)[0].run, 1) << "what is held back can be cancelled";
  EXPECT_EQ(executor.stats().running, 1) << "the other worker holds back";
  EXPECT_EQ(inside, 1);
  gate_.Set();
  answers_.WaitFor(3);
  EXPECT_EQ(executor.stats().promised_bytes, 0);

  DeviceExecutor small("gated:0", &backend_, {.workers = 1, .max_queued = 100, .memory_bytes = bytes - 1});
  const RefusalDetail never = *DetailOf(small.Submit(Request(3)));
  EXPECT_EQ(never.reason, "OUT_OF_MEMORY");
  EXPECT_EQ(never.limit, "gated.memory_bytes");
  EXPECT_EQ(never.limit_value, bytes - 1);
  EXPECT_EQ(never.actual_value, bytes);
  EXPECT_EQ(small.stats().out_of_memory, 1);
  EXPECT_EQ(executor.stats().out_of_memory, 0) << "what waits for memory is not refused";
}

TEST_F(DeviceExecutorTest, MemoryOfOpenSizesIsPromisedWhenTheyAreBound) {
  absl::StatusOr<Graph> graph = ParseGraph(R"(graph "double" {
    %x = input : f32[n]
    %y = add(%x, %x)
    output "y" = %y
  })",
                                           CoreRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  program_ = *Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), &backend_);
  ASSERT_FALSE(program_->static_peak_bytes().has_value());
  const ConcreteType two{.dtype = DType::kF32, .shape = {2}};
  const int64_t bytes = *program_->PeakBytes({two});
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100, .memory_bytes = 2 * bytes - 1});
  for (int run = 0; run < 4; ++run) ASSERT_TRUE(executor.Submit(Request(run)).ok());
  RunRequest large = Request(4);
  large.arguments[0] = {.type = {.dtype = DType::kF32, .shape = {1024}}};
  const auto zeros = std::make_shared<std::vector<float>>(1024);
  large.arguments[0].bytes = std::shared_ptr<const void>(zeros, zeros->data());
  ASSERT_TRUE(executor.Submit(std::move(large)).ok());
  started_.Wait();
  EXPECT_EQ(executor.stats().promised_bytes, bytes);
  gate_.Set();
  for (const RunAnswer& answer : answers_.WaitFor(5)) {
    EXPECT_EQ(answer.reason, answer.run == 4 ? "OUT_OF_MEMORY" : "") << answer.run;
  }
  EXPECT_EQ(executor.stats().promised_bytes, 0);
}

// A program on 2 elements; its run keeps as many as %k says, for a result of `elements`.
CompiledProgramPtr GrowingProgram(int64_t elements, Backend* backend) {
  absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat(R"(graph "growing" {
    %x = input : f32[2]
    %one = constant() {value = i64[] [1]}
    %k = add(%one, %one)
    %y = dynamic_truncate(%x, %k) {dimension = 0}
    %s = reduce(%y) {kind = sum, dimensions = [0]}
    %t = convert(%s) {dtype = i64}
    %z = dynamic_truncate(%x, %t) {dimension = 0}
    %u = reduce(%z) {kind = sum, dimensions = [0]}
    %w = broadcast_in_dim(%u) {shape = [)",
                                                        elements, R"(], broadcast_dimensions = []}
    output "w" = %w
  })"),
                                           CoreRegistry());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), backend);
}

TEST_F(DeviceExecutorTest, MemoryOfSizesThatTheRunDecidesIsPromisedAsItGoesOn) {
  program_ = GrowingProgram(1000, &backend_);
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100, .memory_bytes = 3999});
  ASSERT_TRUE(executor.Submit(Request(0)).ok()) << "nobody knows yet";
  EXPECT_EQ(answers_.WaitFor(1)[0].reason, "OUT_OF_MEMORY");
  EXPECT_EQ(executor.stats().promised_bytes, 0);

  DeviceExecutor::Bounds bounds = executor.bounds();
  bounds.memory_bytes = 5000;
  executor.SetBounds(bounds);
  for (int run = 1; run < 9; ++run) ASSERT_TRUE(executor.Submit(Request(run)).ok());
  const std::vector<RunAnswer> answers = answers_.WaitFor(9);
  for (size_t i = 1; i < answers.size(); ++i) EXPECT_EQ(answers[i].reason, "") << "one waits for the other";
  EXPECT_EQ(executor.stats().promised_bytes, 0);
}

TEST_F(DeviceExecutorTest, WhoWaitsForMoreMemoryCanBeCancelledAndIsNotPassed) {
  program_ = GrowingProgram(1000, &backend_);
  std::atomic<int> runs{0};
  std::atomic<int64_t> most{0};
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100, .memory_bytes = 5000});
  backend_.before_run = [&] {
    most = std::max(most.load(), executor.stats().promised_bytes);
    if (executor.stats().promised_bytes < 4000 || runs++ > 0) return;
    started_.Set();
    gate_.Wait();
  };
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();  // with all of its memory
  const auto token = std::make_shared<CancelToken>();
  RunRequest second = Request(1);
  second.cancel = token;
  ASSERT_TRUE(executor.Submit(std::move(second)).ok());
  token->Cancel();
  EXPECT_EQ(answers_.WaitFor(1)[0].run, 1);
  gate_.Set();
  answers_.WaitFor(2);
  EXPECT_LE(most, 5000);
  EXPECT_EQ(executor.stats().promised_bytes, 0);
}

TEST_F(DeviceExecutorTest, BoundsChangeUnderWhatRuns) {
  const int64_t bytes = *program_->static_peak_bytes();
  std::atomic<int> runs{0};
  backend_.before_run = [&] {
    if (runs++ > 0) return;
    started_.Set();
    gate_.Wait();
  };
  DeviceExecutor executor("gated:0", &backend_, {.workers = 2, .max_queued = 100});
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  EXPECT_EQ(executor.stats().promised_bytes, 0) << "nothing is bounded";
  DeviceExecutor::Bounds bounds = executor.bounds();
  EXPECT_EQ(bounds.max_queued, 100);
  bounds.memory_bytes = 2 * bytes - 1;
  bounds.max_queued = 2;
  executor.SetBounds(bounds);
  ASSERT_TRUE(executor.Submit(Request(1)).ok());
  EXPECT_EQ(answers_.WaitFor(1)[0].run, 1) << "beside the first, which was promised nothing";
  EXPECT_EQ(executor.stats().promised_bytes, 0);

  executor.AddResident(bytes);
  const auto refused = DetailOf(executor.Submit(Request(2)));
  EXPECT_EQ(refused->limit, "gated.memory_bytes");
  bounds.memory_bytes = 0;
  executor.SetBounds(bounds);
  ASSERT_TRUE(executor.Submit(Request(3)).ok());
  EXPECT_EQ(answers_.WaitFor(2)[1].run, 3) << "no bound any more";
  executor.AddResident(-bytes);
  gate_.Set();
  answers_.WaitFor(3);
  EXPECT_EQ(executor.stats().promised_bytes, 0);
}

TEST_F(DeviceExecutorTest, WhatWaitsIsRefusedWhereItCanNeverHaveItsMemoryAnyMore) {
  const int64_t bytes = *program_->static_peak_bytes();
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .max_queued = 100, .memory_bytes = bytes});
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  ASSERT_TRUE(executor.Submit(Request(1)).ok());
  ASSERT_TRUE(executor.Submit(Request(2)).ok());
  DeviceExecutor::Bounds bounds = executor.bounds();
  bounds.max_queued = 1;
  executor.SetBounds(bounds);
  EXPECT_EQ(DetailOf(executor.Submit(Request(3)))->limit, "gated.queue_length") << "more wait than may; they stay";
  bounds.memory_bytes = bytes - 1;
  executor.SetBounds(bounds);
  gate_.Set();
  for (const RunAnswer& answer : answers_.WaitFor(3)) EXPECT_EQ(answer.reason, answer.run == 0 ? "" : "OUT_OF_MEMORY");
  EXPECT_EQ(executor.stats().promised_bytes, 0);
}

TEST_F(DeviceExecutorTest, WorkersGiveWay) {
  const auto niceness = [] { return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))); };
  const int own = niceness();
  std::atomic<int> of_worker{-100};
  backend_.before_run = [&] { of_worker = niceness(); };
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .niceness = 5});
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  answers_.WaitFor(1);
  EXPECT_EQ(of_worker, std::min(19, own + 5));
}

TEST_F(DeviceExecutorTest, CancelledRunsMakeRoomInAFullQueue) {
  backend_.before_run = [&] {
    started_.Set();
    gate_.Wait();
  };
  DeviceExecutor executor("gated:0", &backend_, Options(1, 2));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  const auto token = std::make_shared<CancelToken>();
  for (int i = 1; i <= 2; ++i) {
    RunRequest request = Request(i);
    request.cancel = token;
    ASSERT_TRUE(executor.Submit(std::move(request)).ok());
  }
  EXPECT_FALSE(executor.Submit(Request(3)).ok());
  token->Cancel();
  EXPECT_TRUE(executor.Submit(Request(3)).ok());
  EXPECT_EQ(executor.stats().queued, 1);
  gate_.Set();
  const std::vector<RunAnswer> answers = answers_.WaitFor(4);
  for (const RunAnswer& answer : answers) {
    const bool cancelled = answer.run == 1 || answer.run == 2;
    EXPECT_EQ(answer.reason, cancelled ? "CANCELLED" : "") << answer.run;
  }
}

TEST_F(DeviceExecutorTest, AFullQueueRefusesAndTakesMoreLater) {
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, Options(1, 2));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  started_.Wait();
  ASSERT_TRUE(executor.Submit(Request(1)).ok());
  ASSERT_TRUE(executor.Submit(Request(2)).ok());
  const absl::Status full = executor.Submit(Request(3));
  EXPECT_EQ(ReasonOf(full), "QUEUE_FULL");
  EXPECT_THAT(std::string(full.message()), HasSubstr("gated:0"));
  gate_.Set();
  EXPECT_EQ(answers_.WaitFor(3).size(), 3u);
  EXPECT_TRUE(executor.Submit(Request(4)).ok());
  EXPECT_EQ(answers_.WaitFor(4).back().run, 4);  // the refused run was never answered
}

TEST_F(DeviceExecutorTest, StoppingAnswersWhatIsQueuedAndFinishesWhatRuns) {
  CloseGate();
  std::optional<DeviceExecutor> executor(std::in_place, "gated:0", &backend_, Options(1, 100));
  ASSERT_TRUE(executor->Submit(Request(0)).ok());
  started_.Wait();
  ASSERT_TRUE(executor->Submit(Request(1)).ok());
  ASSERT_TRUE(executor->Submit(Request(2)).ok());
  std::thread stopping([&executor] { executor.reset(); });
  std::vector<RunAnswer> answers = answers_.WaitFor(2);  // while the first one still runs
  EXPECT_EQ(answers[0].run, 1);
  EXPECT_EQ(answers[0].reason, "SERVER_DRAINING");
  EXPECT_EQ(answers[1].run, 2);
  EXPECT_EQ(answers[1].reason, "SERVER_DRAINING");
  gate_.Set();
  stopping.join();
  answers = answers_.WaitFor(3);
  EXPECT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2].run, 0);
  EXPECT_EQ(answers[2].reason, "");
}

TEST_F(DeviceExecutorTest, AnExceptionOfTheBackendIsAnAnswer) {
  std::atomic<bool> fail{true};
  backend_.before_run = [&fail] {
    if (fail.exchange(false)) throw std::bad_alloc();
  };
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  ASSERT_TRUE(executor.Submit(Request(0)).ok());
  ASSERT_TRUE(executor.Submit(Request(1)).ok());
  const std::vector<RunAnswer> answers = answers_.WaitFor(2);
  EXPECT_EQ(answers[0].reason, "INTERNAL");
  EXPECT_THAT(answers[0].message, HasSubstr("bad_alloc"));
  EXPECT_EQ(answers[1].reason, "");
}

TEST_F(DeviceExecutorTest, ArgumentsThatDoNotFitAreRefused) {
  DeviceExecutor executor("gated:0", &backend_, Options(1, 100));
  RunRequest none = Request(0);
  none.arguments.clear();
  RunRequest wrong = Request(1);
  wrong.arguments[0].type.dtype = DType::kI32;
  ASSERT_TRUE(executor.Submit(std::move(none)).ok());
  ASSERT_TRUE(executor.Submit(std::move(wrong)).ok());
  const std::vector<RunAnswer> answers = answers_.WaitFor(2);
  EXPECT_EQ(answers[0].reason, "ARGUMENT_COUNT");
  EXPECT_EQ(answers[1].reason, "ARGUMENT_MISMATCH");
}

TEST(ExecutorPool, FindsDevicesByName) {
  GatedBackend gated;
  HiddenMemoryBackend hidden;
  ExecutorPool pool;
  pool.Add(std::make_unique<DeviceExecutor>("gated:0", &gated, Options(1, 1)));
  pool.Add(std::make_unique<DeviceExecutor>("gated:1", &gated, Options(1, 1)));
  pool.Add(std::make_unique<DeviceExecutor>("hidden:0", &hidden, Options(1, 1)));
  const auto name = [&pool](absl::string_view device) -> std::string {
    const auto found = pool.Find(device);
    return found.ok() ? (*found)->device() : ReasonOf(found.status());
  };
  EXPECT_EQ(name(""), "gated:0");
  EXPECT_EQ(name("gated"), "gated:0");
  EXPECT_EQ(name("gated:1"), "gated:1");
  EXPECT_EQ(name("hidden"), "hidden:0");
  for (absl::string_view unknown : {"gated:2", "GATED:0", "gated:", "cpu:0", " gated:0"}) {
    EXPECT_EQ(name(unknown), "DEVICE_UNKNOWN") << unknown;
  }
  EXPECT_THAT(std::string(pool.Find("cpu").status().message()), HasSubstr("gated:0, gated:1, hidden:0"));
}

}  // namespace
}  // namespace tensord
