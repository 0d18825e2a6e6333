// Runs that stop in their middle, for a stage that the compile pool binds or for memory.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/device_executor.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord {
namespace {

struct AsideAnswer {
  int run = 0;
  absl::Status status;
  std::vector<float> values;  // of the first result
};

// A device that prepares slowly, of one worker, and a compile pool of one thread.
class RunsAsideTest : public testing::Test {
 protected:
  RunsAsideTest() {
    backend_.prepares_slowly = true;
    plain_ = CompileText(R"(
      %x = input : f32[2]
      %y = add(%x, %x)
      output "y" = %y)");
    backend_.before_run = [this] {
      MutexLock lock(&mutex_);
      ran_on_.push_back(std::this_thread::get_id());
    };
  }

  CompiledProgramPtr CompileText(const std::string& body) {
    absl::StatusOr<Graph> graph = ParseGraph(absl::StrCat("graph \"g\" {", body, "\n}"), CoreRegistry());
    EXPECT_TRUE(graph.ok()) << graph.status();
    const auto program = Compile(*std::move(graph), {.device = "gated:0"}, Fingerprint(), &backend_);
    EXPECT_TRUE(program.ok()) << program.status();
    return *program;
  }

  // Keeps as many elements of the absolute of x as the largest of these says, which the run has with a result of so
  // many elements.
  CompiledProgramPtr CompileCut(int64_t elements) {
    return CompileText(absl::StrCat(R"(
      %x = input : f32[2]
      %a = abs(%x)
      %s = reduce(%a) {kind = max, dimensions = [0]}
      %large = broadcast_in_dim(%s) {shape = [)",
                                    elements, R"(], broadcast_dimensions = []}
      %k = convert(%s) {dtype = i64}
      %y = dynamic_truncate(%a, %k) {dimension = 0}
      output "y" = %y
      output "large" = %large)"));
  }

  RunRequest Request(int run, CompiledProgramPtr program, std::vector<float> x) {
    const auto bytes = std::make_shared<std::vector<float>>(std::move(x));
    RunTensor argument{.type = {.dtype = DType::kF32, .shape = {2}}};
    argument.bytes = std::shared_ptr<const void>(bytes, bytes->data());
    RunRequest request{.program = std::move(program), .arguments = {std::move(argument)}};
    request.compile_pool = &pool_;
    request.done = [this, run](absl::StatusOr<RunOutcome> outcome) {
      AsideAnswer answer{.run = run, .status = outcome.status()};
      if (outcome.ok()) {
        const auto* const values = static_cast<const float*>(outcome->results[0].bytes.get());
        answer.values.assign(values, values + outcome->results[0].type.num_elements());
      }
      answers_.Put(std::move(answer));
    };
    return request;
  }

  // The next preparation stops until gate_ is set.
  void CloseGate() {
    backend_.before_prepare = [this] {
      preparing_.Set();
      gate_.Wait();
    };
  }

  GatedBackend backend_;
  CompiledProgramPtr plain_;
  Event preparing_, gate_;
  Inbox<AsideAnswer> answers_;
  Mutex mutex_;
  std::vector<std::thread::id> ran_on_ ABSL_GUARDED_BY(mutex_);
  CompilePool pool_{1, 10};
};

TEST_F(RunsAsideTest, OthersRunWhileAStageIsBound) {
  const CompiledProgramPtr cut = CompileCut(10);
  backend_.prepared_on.clear();
  CloseGate();
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1});
  ASSERT_TRUE(executor.Submit(Request(0, cut, {-1, 1})).ok());
  preparing_.Wait();
  ASSERT_TRUE(executor.Submit(Request(1, plain_, {3, 4})).ok());
  ASSERT_TRUE(executor.Submit(Request(2, cut, {-2, 1})).ok()) << "of the same first stage";
  ASSERT_TRUE(executor.Submit(Request(3, plain_, {5, 6})).ok());
  std::vector<AsideAnswer> answers = answers_.WaitFor(2);
  EXPECT_EQ(answers[0].run, 1);
  EXPECT_EQ(answers[0].values, (std::vector<float>{6, 8}));
  EXPECT_EQ(answers[1].run, 3);
  gate_.Set();
  answers = answers_.WaitFor(4);
  std::sort(answers.begin(), answers.end(), [](const AsideAnswer& a, const AsideAnswer& b) { return a.run < b.run; });
  EXPECT_EQ(answers[0].values, (std::vector<float>{1}));
  EXPECT_EQ(answers[2].values, (std::vector<float>{2, 1}));
  EXPECT_EQ(executor.stats().completed, 4);
  EXPECT_EQ(executor.stats().running, 0);
  MutexLock lock(&mutex_);
  EXPECT_FALSE(backend_.prepared_on.empty());
  for (const std::thread::id prepared_on : backend_.prepared_on) {
    EXPECT_EQ(std::count(ran_on_.begin(), ran_on_.end(), prepared_on), 0) << "the executor's thread prepared a stage";
  }
}

TEST_F(RunsAsideTest, WithoutAPoolTheRunBindsItself) {
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1});
  RunRequest request = Request(0, CompileCut(10), {-2, 1});
  request.compile_pool = nullptr;
  ASSERT_TRUE(executor.Submit(std::move(request)).ok());
  EXPECT_EQ(answers_.WaitFor(1)[0].values, (std::vector<float>{2, 1}));
  EXPECT_EQ(pool_.stats().done, 0);
}

TEST_F(RunsAsideTest, CancelledOrLateItIsAnsweredWhileItsStageIsBound) {
  CloseGate();
  {
    DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .memory_bytes = 10'000});
    const auto token = std::make_shared<CancelToken>();
    RunRequest cancelled = Request(0, CompileCut(10), {-1, 1});
    cancelled.cancel = token;
    ASSERT_TRUE(executor.Submit(std::move(cancelled)).ok());
    preparing_.Wait();
    EXPECT_EQ(executor.stats().running, 1);
    EXPECT_EQ(executor.stats().queued, 0);
    token->Cancel();
    EXPECT_EQ(ReasonOf(answers_.WaitFor(1)[0].status), "CANCELLED");

    RunRequest late = Request(1, CompileCut(11), {-1, 1});
    late.deadline = absl::Now() + absl::Milliseconds(500);
    ASSERT_TRUE(executor.Submit(std::move(late)).ok());
    EXPECT_EQ(ReasonOf(answers_.WaitFor(2)[1].status), "DEADLINE_EXCEEDED");
    EXPECT_EQ(executor.stats().running, 0);
    EXPECT_EQ(executor.stats().failed, 2);
    EXPECT_EQ(executor.stats().promised_bytes, 0);
    EXPECT_EQ(pool_.stats().queued, 0) << "what nobody waits for is dropped";
    ASSERT_TRUE(executor.Submit(Request(2, plain_, {1, 2})).ok());
    EXPECT_EQ(answers_.WaitFor(3)[2].run, 2);
  }
  gate_.Set();
  plain_ = nullptr;
  EXPECT_EQ(backend_.live_buffers(), 0);
}

TEST_F(RunsAsideTest, AFullPoolRefusesTheRun) {
  pool_.SetBounds({.max_queued = 0});
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1});
  ASSERT_TRUE(executor.Submit(Request(0, CompileCut(10), {-1, 1})).ok());
  const absl::Status refused = answers_.WaitFor(1)[0].status;
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_EQ(DetailOf(refused)->limit, "compiler.queue_length");
  EXPECT_EQ(executor.stats().running, 0);
}

TEST_F(RunsAsideTest, AStageThatIsRefusedEndsItsRun) {
  const CompiledProgramPtr refused = CompileText(R"(
      %x = input : f32[2]
      %s = reduce(%x) {kind = max, dimensions = [0]}
      %k = convert(%s) {dtype = i64}
      %y = dynamic_truncate(%x, %k) {dimension = 0}
      %z = add(%y, %x)
      output "z" = %z)");
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1});
  ASSERT_TRUE(executor.Submit(Request(0, refused, {0, 1})).ok());
  ASSERT_TRUE(executor.Submit(Request(1, refused, {2, 1})).ok());
  std::vector<AsideAnswer> answers = answers_.WaitFor(2);
  std::sort(answers.begin(), answers.end(), [](const AsideAnswer& a, const AsideAnswer& b) { return a.run < b.run; });
  EXPECT_EQ(ReasonOf(answers[0].status), "SHAPE_MISMATCH");
  EXPECT_EQ(DetailOf(answers[0].status)->node, "z");
  EXPECT_EQ(answers[1].values, (std::vector<float>{4, 2}));
}

// The run that waits for its stage has most of the memory, and there is only one worker.
TEST_F(RunsAsideTest, WhoWaitsForItsMemoryHoldsNoWorker) {
  const CompiledProgramPtr cut = CompileCut(1000), small = CompileCut(999);
  DeviceExecutor executor("gated:0", &backend_, {.workers = 1, .memory_bytes = 6000});
  ASSERT_TRUE(executor.Submit(Request(0, small, {-1, 1})).ok());
  ASSERT_TRUE(answers_.WaitFor(1)[0].status.ok());
  // The first stages are bound, for which a run is cut to none; the second for one element is not yet.
  ASSERT_TRUE(executor.Submit(Request(1, cut, {0, 0})).ok());
  ASSERT_TRUE(answers_.WaitFor(2)[1].status.ok());
  CloseGate();
  ASSERT_TRUE(executor.Submit(Request(2, cut, {-1, 1})).ok());
  preparing_.Wait();
  EXPECT_GE(executor.stats().promised_bytes, 4000);
  Event begins;
  RunRequest second = Request(3, small, {-1, 1});
  second.admit = [&begins] {
    begins.Set();
    return absl::OkStatus();
  };
  ASSERT_TRUE(executor.Submit(std::move(second)).ok());
  begins.Wait();
  executor.SetBounds(executor.bounds());  // which has both looked at again
  EXPECT_EQ(executor.stats().running, 2);
  gate_.Set();
  for (const AsideAnswer& answer : answers_.WaitFor(4)) EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_EQ(executor.stats().promised_bytes, 0);
  EXPECT_EQ(executor.stats().out_of_memory, 0);
}

TEST_F(RunsAsideTest, StoppingAnswersThem) {
  CloseGate();
  std::optional<DeviceExecutor> executor(std::in_place, "gated:0", &backend_, DeviceExecutor::Options{.workers = 1});
  ASSERT_TRUE(executor->Submit(Request(0, CompileCut(10), {-1, 1})).ok());
  preparing_.Wait();
  executor.reset();
  EXPECT_EQ(ReasonOf(answers_.WaitFor(1)[0].status), "SERVER_DRAINING");
  gate_.Set();  // who binds finds nobody
}

// Several workers, sizes that are new now and then, cancellations at any moment, and memory for hardly more than one.
TEST_F(RunsAsideTest, AllAreAnsweredWhateverTheyWaitFor) {
  constexpr int kRuns = 300;
  pool_.SetBounds({});
  const std::vector<CompiledProgramPtr> cuts = {CompileCut(1000), CompileCut(10), CompileCut(600)};
  std::vector<std::shared_ptr<CancelToken>> tokens;
  {
    DeviceExecutor executor("gated:0", &backend_, {.workers = 3, .max_queued = kRuns, .memory_bytes = 6000});
    for (int run = 0; run < kRuns; ++run) {
      const bool is_plain = run % 7 == 0;
      RunRequest request =
          Request(run, is_plain ? plain_ : cuts[static_cast<size_t>(run % 3)], {static_cast<float>(run % 4), 1});
      tokens.push_back(std::make_shared<CancelToken>());
      request.cancel = tokens.back();
      request.tenant = absl::StrCat("t", run % 5);
      ASSERT_TRUE(executor.Submit(std::move(request)).ok());
      if (run % 3 == 0) tokens[static_cast<size_t>(run / 2)]->Cancel();
    }
    for (const AsideAnswer& answer : answers_.WaitFor(kRuns)) {
      const std::string reason = ReasonOf(answer.status);
      EXPECT_TRUE(answer.status.ok() || reason == "CANCELLED" || reason == "OUT_OF_MEMORY") << answer.status;
      if (!answer.status.ok()) continue;
      const float x = static_cast<float>(answer.run % 4);
      std::vector<float> want = {x, 1};
      if (answer.run % 7 == 0) {
        want = {2 * x, 2};
      } else if (std::max(x, 1.0f) < 2) {
        want = {x};
      }
      EXPECT_EQ(answer.values, want) << answer.run;
    }
    // Who was answered while its stage was bound is not running any more.
    EXPECT_EQ(executor.stats().running, 0);
    EXPECT_EQ(executor.stats().promised_bytes, 0);
    EXPECT_EQ(executor.stats().completed + executor.stats().failed, kRuns);
  }
  EXPECT_EQ(answers_.size(), static_cast<size_t>(kRuns));
}

}  // namespace
}  // namespace tensord
