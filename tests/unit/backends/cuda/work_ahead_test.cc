// How far sessions go ahead of the device, by the number of steps that they have enqueued while it does none of them.
#include "backends/cuda/work_ahead.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/cuda_session.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "tests/unit/backends/cuda/beside_cpu.h"

namespace tensord::cuda {
namespace {

using std::chrono::milliseconds;

class WorkAheadTest : public BesideCpuTest {
 protected:
  static constexpr milliseconds kMost{20};
  static constexpr size_t kSteps = 40;

  // A step of so many parts, of so many pieces of work each. A piece has taken WORK_US by the events of the host CUDA
  // device.
  class Pieces final : public Kernel {
   public:
    Pieces(Context* context, int pieces, std::atomic<size_t>* enqueued, int parts = 1, bool varies = false)
        : context_(context), pieces_(pieces), enqueued_(enqueued), parts_(parts), varies_(varies) {}
    absl::Status Enqueue(const Launch& launch) const override {
      for (int part = 0; part < parts_; ++part) {
        const absl::Status goes_on = launch.BeforePart(part, parts_);
        if (!goes_on.ok()) return goes_on;
        ++*enqueued_;
        for (int i = 0; i < pieces_; ++i) {
          const CuResult filled = context_->driver().cuMemsetD8Async(launch.workspace, 0, 1, launch.stream);
          if (filled != kCuSuccess) return context_->Check(filled, "cuMemsetD8Async");
        }
      }
      return absl::OkStatus();
    }
    int64_t workspace_bytes() const override { return 1; }
    bool varies() const override { return varies_; }
    std::string Describe() const override { return ""; }

   private:
    Context* const context_;
    const int pieces_;
    std::atomic<size_t>* const enqueued_;
    const int parts_;
    const bool varies_;
  };

  void SetUp() override {
    context_ = Entered();
    memory_ = *DevicePool::Create(context_, {.limit_bytes = 8 << 20});
    lanes_ = std::make_unique<Lanes>(context_, libraries_.get(), 1);
  }
  void TearDown() override {
    lanes_.reset();
    memory_.reset();
    context_.reset();
    BesideCpuTest::TearDown();
  }

  std::unique_ptr<CudaProgram> Program(const std::vector<int>& pieces) {
    std::vector<SegmentInstruction> segments(pieces.size(), {.bound = {.op = &Def(CoreOp::kExp)}, .node = "n"});
    size_t made = 0;
    return *CudaProgram::CreateOf(segments, [&](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      return std::make_unique<Pieces>(context_.get(), pieces[made++], &enqueued_);
    });
  }
  // A program of one step, or some.
  std::unique_ptr<CudaProgram> ProgramOfParts(int parts, bool varies = false, size_t steps = 1) {
    const std::vector<SegmentInstruction> segments(steps, {.bound = {.op = &Def(CoreOp::kExp)}, .node = "n"});
    return *CudaProgram::CreateOf(segments, [&](const BoundInstruction&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      return std::make_unique<Pieces>(context_.get(), 1, &enqueued_, parts, varies);
    });
  }
  absl::Status Run(const CudaProgram& program, const RunCheck& check = nullptr) {
    enqueued_ = 0;
    CudaSession session(context_, memory_, *lanes_->Borrow(), kMost);
    session.set_check(check);
    const absl::Status run = session.Run(program, {}, {}, {});
    return run.ok() ? session.Finish() : run;
  }
  // Runs while the device does nothing, until the session waits for it; calls a function then, and lets the device go
  // on.
  absl::Status RunUntilItWaits(const CudaProgram& program, const std::function<void()>& then,
                               const RunCheck& check = nullptr) {
    return UntilItWaits([&] { return Run(program, check); }, then);
  }
  absl::Status UntilItWaits(const std::function<absl::Status()>& run, const std::function<void()>& then) {
    const long waits = Waits();
    hostCudaSet("HOLD", "1");
    std::thread other([&] {
      while (Waits() == waits) std::this_thread::yield();
      then();
      hostCudaSet("HOLD", "0");
    });
    const absl::Status status = run();
    other.join();
    return status;
  }
  long Waits() { return hostCudaCalls("cuEventSynchronize") + hostCudaCalls("cuStreamSynchronize"); }
  size_t StepsBeforeItWaits(const CudaProgram& program) {
    size_t steps = 0;
    EXPECT_TRUE(RunUntilItWaits(program, [&] { steps = enqueued_; }).ok());
    return steps;
  }

  std::shared_ptr<Context> context_;
  std::shared_ptr<DevicePool> memory_;
  std::unique_ptr<Lanes> lanes_;
  std::atomic<size_t> enqueued_ = 0;
};

TEST_F(WorkAheadTest, StepsAreAheadByTheTimesThatTheyTookBefore) {
  hostCudaSet("WORK_US", "1000");
  const auto program = Program(std::vector<int>(kSteps, 1));
  EXPECT_EQ(StepsBeforeItWaits(*program), 2u) << "their times are not known yet";
  EXPECT_EQ(enqueued_, kSteps);
  EXPECT_TRUE(program->times().AreKnown());
  EXPECT_EQ(program->times().OfAll(kMost), milliseconds(kSteps));
  EXPECT_EQ(StepsBeforeItWaits(*program), 20u);
  EXPECT_EQ(enqueued_, kSteps);
  // They are measured again as far as they matter.
  hostCudaSet("WORK_US", "4000");
  EXPECT_TRUE(Run(*program).ok());
  EXPECT_EQ(StepsBeforeItWaits(*program), 5u);
  hostCudaSet("WORK_US", "500");
  EXPECT_TRUE(Run(*program).ok());
  EXPECT_EQ(StepsBeforeItWaits(*program), kSteps) << "it waits for the end alone";
}

TEST_F(WorkAheadTest, ACancelledRunEndsWithWhatIsAhead) {
  hostCudaSet("WORK_US", "1000");
  const auto program = Program(std::vector<int>(kSteps, 1));
  for (const size_t most : {size_t{2}, size_t{20}}) {
    std::atomic<bool> is_wanted = true;
    const RunCheck check = [&] { return is_wanted ? absl::OkStatus() : absl::CancelledError("enough"); };
    EXPECT_TRUE(absl::IsCancelled(RunUntilItWaits(
        *program, [&] { is_wanted = false; }, check)));
    EXPECT_EQ(enqueued_, most);
    EXPECT_EQ(memory_->stats().in_use_bytes, 0);
    EXPECT_TRUE(Run(*program).ok());
    EXPECT_EQ(enqueued_, kSteps);
  }
}

// The steps behind the last event of the bound have times too.
TEST_F(WorkAheadTest, TheLastStepsOfARunAreMeasured) {
  hostCudaSet("WORK_US", "1000");
  const auto program = Program({6, 1});
  ASSERT_TRUE(Run(*program).ok());
  EXPECT_EQ(program->times().Of(1, kMost), milliseconds(1));
  hostCudaSet("WORK_US", "4000");
  ASSERT_TRUE(Run(*program).ok());
  EXPECT_EQ(program->times().Of(0, kMost), milliseconds(24));
  EXPECT_EQ(program->times().Of(1, kMost), milliseconds(4));
}

// What fails is not measured, and the bound holds.
TEST_F(WorkAheadTest, ATimeThatNobodyCanTellFailsNoRun) {
  hostCudaSet("WORK_US", "1000");
  ASSERT_TRUE(Run(*Program({1})).ok());  // the lane has its own events
  for (const char* const function : {"cuEventCreate", "cuEventElapsedTime"}) {
    SCOPED_TRACE(function);
    const auto program = Program(std::vector<int>(kSteps, 1));
    hostCudaFail(function, 0, kCuUnknown);
    EXPECT_EQ(StepsBeforeItWaits(*program), 2u);
    EXPECT_EQ(enqueued_, kSteps);
    EXPECT_FALSE(program->times().AreKnown());
    for (long n = 1; n < 10; ++n) {
      hostCudaFail(function, n, kCuUnknown);
      EXPECT_TRUE(Run(*program).ok()) << n;
      EXPECT_EQ(enqueued_, kSteps);
    }
    hostCudaFail("", 0, 0);
    EXPECT_TRUE(Run(*program).ok());
    EXPECT_TRUE(program->times().AreKnown());
    EXPECT_EQ(StepsBeforeItWaits(*program), 20u);
  }
  hostCudaFail("cuEventElapsedTime", 1, kCuIllegalAddress);
  EXPECT_TRUE(absl::IsDataLoss(Run(*Program({1, 1})))) << "this is no matter of times";
  ResetDevice();
}

TEST_F(WorkAheadTest, PartsOfAStepAreAheadByTheTimeOfAPart) {
  hostCudaSet("WORK_US", "1000");
  const auto program = ProgramOfParts(100);
  EXPECT_EQ(StepsBeforeItWaits(*program), 2u) << "their time is not known yet";
  EXPECT_EQ(enqueued_, 100u);
  EXPECT_EQ(program->times().PartsOf(0), 100);
  EXPECT_EQ(program->times().OfAll(kMost), milliseconds(100));
  EXPECT_EQ(StepsBeforeItWaits(*program), 20u);
  EXPECT_EQ(enqueued_, 100u);
}

// Updates that have a destination each may be followed by as many that have one together.
TEST_F(WorkAheadTest, AStepWhoseTimeDependsOnNumbersIsLookedAtEachTime) {
  hostCudaSet("WORK_US", "1");
  const auto program = ProgramOfParts(100, /*varies=*/true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(StepsBeforeItWaits(*program), 2u) << i;
  EXPECT_EQ(program->times().OfAll(kMost), kMost * 100);
  hostCudaSet("WORK_US", "30000");
  ASSERT_TRUE(Run(*ProgramOfParts(2, /*varies=*/true)).ok());
  // Nor is it part of a graph that could not be ended.
  hostCudaSet("WORK_US", "1");
  const auto steps = ProgramOfParts(2, /*varies=*/true, 4);
  const long graphs = hostCudaCalls("cuGraphLaunch");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(*steps).ok());
  EXPECT_EQ(hostCudaCalls("cuGraphLaunch"), graphs);
}

// The lane has not failed, and goes on with other runs.
TEST_F(WorkAheadTest, ACancelledStepEndsWithThePartsThatAreAhead) {
  hostCudaSet("WORK_US", "1000");
  const auto program = ProgramOfParts(100);
  const long streams = hostCudaCalls("cuStreamCreate");
  for (const size_t most : {size_t{2}, size_t{20}}) {
    std::atomic<bool> is_wanted = true;
    const RunCheck check = [&] { return is_wanted ? absl::OkStatus() : absl::CancelledError("enough"); };
    EXPECT_TRUE(absl::IsCancelled(RunUntilItWaits(
        *program, [&] { is_wanted = false; }, check)));
    EXPECT_EQ(enqueued_, most);
    EXPECT_EQ(memory_->stats().in_use_bytes, 0);
    EXPECT_TRUE(Run(*program).ok());
    EXPECT_EQ(enqueued_, 100u);
  }
  EXPECT_EQ(hostCudaCalls("cuStreamCreate") - streams, 1);
}

// A part may be known before its step is over, and a step may be enqueued in other parts than before.
TEST_F(WorkAheadTest, TimesOfParts) {
  StepTimes times(2);
  const milliseconds unknown(10);
  times.SetParts(1, 8);
  EXPECT_EQ(times.OfPart(1, unknown), unknown);
  times.Learn({{.step = 0, .parts = 1}, {.step = 1, .parts = 1}}, milliseconds(4), unknown);
  EXPECT_TRUE(times.AreKnown());
  EXPECT_EQ(times.OfPart(1, unknown), milliseconds(2));
  EXPECT_EQ(times.OfAll(unknown), milliseconds(2 + 16));
  times.SetParts(1, 4);
  EXPECT_EQ(times.OfPart(1, unknown), milliseconds(4));
  EXPECT_EQ(times.OfAll(unknown), milliseconds(2 + 16));
  times.Learn({{.step = 1, .parts = 3}}, milliseconds(6), unknown);
  EXPECT_EQ(times.Of(1, unknown), milliseconds(8));
  EXPECT_EQ(times.OfAll(unknown), milliseconds(2 + 8));
}

// Nothing can cut a kernel. It is alone on its way, at least.
TEST_F(WorkAheadTest, AStepThatTakesLongerIsAheadAlone) {
  hostCudaSet("WORK_US", "1000");
  const auto program = Program({1, 100, 1, 1});
  ASSERT_TRUE(Run(*program).ok());
  EXPECT_EQ(program->times().Of(1, kMost), milliseconds(100));
  EXPECT_EQ(StepsBeforeItWaits(*program), 1u);
  const auto alone = Program({100, 1, 1, 1});
  ASSERT_TRUE(Run(*alone).ok());
  EXPECT_EQ(StepsBeforeItWaits(*alone), 1u);
}

TEST_F(WorkAheadTest, ShortProgramsAreNotLookedAt) {
  hostCudaSet("WORK_US", "100");
  const auto program = Program({1, 1, 1});
  ASSERT_TRUE(Run(*program).ok());
  const long events = hostCudaCalls("cuEventRecord");
  ASSERT_TRUE(Run(*program).ok());
  EXPECT_EQ(hostCudaCalls("cuEventRecord") - events, 1) << "by which the lane waits for its end";
}

// A graph is ahead as a whole.
TEST_F(WorkAheadTest, AProgramThatTakesLongerThanTheBoundIsNoGraph) {
  for (const char* const per_step : {"4000", "6000"}) {
    hostCudaSet("WORK_US", per_step);
    const bool fits = per_step == std::string("4000");
    const auto program = Program({1, 1, 1, 1});
    for (int i = 0; i < 4; ++i) {
      const long graphs = hostCudaCalls("cuGraphLaunch");
      ASSERT_TRUE(Run(*program).ok());
      EXPECT_EQ(hostCudaCalls("cuGraphLaunch") - graphs, fits && i > 0) << i;
    }
    if (!fits) continue;
    hostCudaSet("WORK_US", "6000");
    const long graphs = hostCudaCalls("cuGraphLaunch");
    ASSERT_TRUE(Run(*program).ok());
    EXPECT_EQ(hostCudaCalls("cuGraphLaunch") - graphs, 1);
    EXPECT_EQ(StepsBeforeItWaits(*program), 3u) << "the graph took 24 ms";
    EXPECT_EQ(hostCudaCalls("cuGraphLaunch") - graphs, 1);
  }
}

// By the way of a client's cancellation.
TEST_F(WorkAheadTest, ARunThatItsClientCancelsLaunchesNoMore) {
  most_ahead_ = kMost;
  const std::unique_ptr<Backend> backend = Made();
  std::string text = "graph \"g\" {\n  %x0 = input : i32[8,8]\n";
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&text, "  %r", i, " = reduce(%x", i, ") {kind = max, dimensions = [", i % 2, "]}\n  %b", i,
                    " = broadcast_in_dim(%r", i, ") {shape = [8, 8], broadcast_dimensions = [", 1 - i % 2, "]}\n  %x",
                    i + 1, " = subtract(%x", i, ", %b", i, ")\n");
  }
  absl::StrAppend(&text, "  output \"x\" = %x20\n}\n");
  const auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const auto cancel = std::make_shared<CancelToken>();
  RunRequest run;
  run.program = *program;
  run.cancel = cancel;
  RunTensor& argument = run.arguments.emplace_back(RunTensor{.type = {DType::kI32, {8, 8}}});
  const std::vector<int32_t> values(64);
  argument.buffer = *backend->Import(values.data(), 256, nullptr);
  long kernels = hostCudaCalls("cuLaunchKernel");
  ASSERT_TRUE(RunProgram(run, absl::ZeroDuration()).ok());
  EXPECT_GE(hostCudaCalls("cuLaunchKernel") - kernels, 20);
  argument.buffer = *backend->Import(values.data(), 256, nullptr);
  const auto fresh = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(fresh.ok());
  run.program = *fresh;
  kernels = hostCudaCalls("cuLaunchKernel");
  const absl::Status cancelled =
      UntilItWaits([&] { return RunProgram(run, absl::ZeroDuration()).status(); }, [&] { cancel->Cancel(); });
  EXPECT_EQ(ReasonOf(cancelled), "CANCELLED");
  EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - kernels, 2);
}

// A batch is a call of a library for each matrix.
TEST_F(WorkAheadTest, LoopsOfLibraryCallsAreCut) {
  constexpr int64_t kSide = 33, kBatch = 12;
  struct Loop {
    std::string results, call, function;
    int64_t side = kSide;
  };
  const std::vector<Loop> loops = {{":2", "Qr(%x)", "cusolverDnXgeqrf"},
                                   {"", "Cholesky(%x)", "cusolverDnXpotrf", 257},
                                   {":3", "Svd(%x)", "cusolverDnXgesvd"},
                                   {":2", "Eigh(%x)", "cusolverDnXsyevd"},
                                   {":2", "Eig(%x)", "cusolverDnXgeev"},
                                   {"", "Solve(%x, %x)", "cusolverDnXgetrf"},
                                   {"", "TriangularSolve(%x, %x)", "cublasStrsm_v2_64"}};
  const_cast<Solver*>(*libraries_->solver())->cusolverDnXsyevBatched = nullptr;
  most_ahead_ = kMost;
  const std::unique_ptr<Backend> backend = Made();
  for (const Loop& loop : loops) {
    SCOPED_TRACE(loop.call);
    const ConcreteType type = {DType::kF32, {loop.side, loop.side, kBatch}};
    std::vector<float> values(static_cast<size_t>(type.num_elements()));
    for (int64_t i = 0; i < type.num_elements(); ++i) {
      const bool is_diagonal = i % (loop.side * loop.side) % (loop.side + 1) == 0;
      values[static_cast<size_t>(i)] = static_cast<float>(i % 7) + (is_diagonal ? 2000.0F : 0.0F);
    }
    const std::string text =
        absl::StrCat("graph \"g\" {\n  %x = input : ", ToString(type), "\n  %y", loop.results, " = tensord.linalg.v1.",
                     loop.call, "\n  output \"y\" = %y", loop.results.empty() ? "" : ":0", "\n}\n");
    const auto program = Compile(ParsedGraph(text), {.device = "d:0"}, Fingerprint(), backend.get());
    ASSERT_TRUE(program.ok()) << program.status();
    const auto cancel = std::make_shared<CancelToken>();
    RunRequest run;
    run.program = *program;
    run.cancel = cancel;
    RunTensor& argument = run.arguments.emplace_back(RunTensor{.type = type});
    argument.buffer = *backend->Import(values.data(), type.num_bytes(), nullptr);
    const auto calls = [&] { return hostCudaCalls(loop.function.c_str()); };
    long before = calls();
    const absl::Status cancelled =
        UntilItWaits([&] { return RunProgram(run, absl::ZeroDuration()).status(); }, [&] { cancel->Cancel(); });
    EXPECT_EQ(ReasonOf(cancelled), "CANCELLED");
    EXPECT_EQ(calls() - before, 2);
    run.cancel = nullptr;
    before = calls();
    hostCudaSet("WORK_US", "15000");  // one part waits for the other
    const absl::Status whole = RunProgram(run, absl::ZeroDuration()).status();
    EXPECT_TRUE(whole.ok()) << whole;
    EXPECT_EQ(calls() - before, kBatch);
    hostCudaSet("WORK_US", "");
  }
}

// Updates of one destination follow each other.
TEST_F(WorkAheadTest, ALongScatterIsCut) {
  most_ahead_ = kMost;
  const std::unique_ptr<Backend> backend = Made();
  const auto program = Compile(ParsedGraph(R"(graph "g" {
  %x = input : f32[4]
  %i = input : i32[70000,1]
  %u = input : f32[70000]
  %y = scatter(%x, %i, %u) {inserted_window_dims = [0], update_window_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, combiner = add}
  output "y" = %y
})"),
                               {.device = "d:0"}, Fingerprint(), backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  const auto cancel = std::make_shared<CancelToken>();
  RunRequest run;
  run.program = *program;
  run.cancel = cancel;
  const std::vector<char> zeros(280000);
  for (const ConcreteType& type :
       {ConcreteType{DType::kF32, {4}}, ConcreteType{DType::kI32, {70000, 1}}, ConcreteType{DType::kF32, {70000}}}) {
    RunTensor& argument = run.arguments.emplace_back(RunTensor{.type = type});
    argument.buffer = *backend->Import(zeros.data(), type.num_bytes(), nullptr);
  }
  const long kernels = hostCudaCalls("cuLaunchKernel");
  const absl::Status cancelled =
      UntilItWaits([&] { return RunProgram(run, absl::ZeroDuration()).status(); }, [&] { cancel->Cancel(); });
  EXPECT_EQ(ReasonOf(cancelled), "CANCELLED");
  EXPECT_EQ(hostCudaCalls("cuLaunchKernel") - kernels, 2);
}

}  // namespace
}  // namespace tensord::cuda
