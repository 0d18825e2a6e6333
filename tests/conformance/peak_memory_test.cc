#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "backends/cpu/kernel/kernel.h"
#include "engine/autodiff/differentiate.h"
#include "engine/base/at.h"
#include "engine/exec/memory/buffer_plan.h"
#include "engine/runtime/compile/compiler.h"
#include "gtest/gtest.h"
#include "tests/conformance/backends_under_test.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/runs/liveness_optimum.h"

namespace tensord {
namespace {

// The most that a run may take, with all scratch of its kernels, relative to the values alive at once and the scratch
// that an algorithm cannot do without, which the graph names for the CPU; on other devices what kernels ask for. The
// workspace of a session, which kernels keep in the processor's caches, is a few MiB however large the values are: it
// has a bound of its own.
constexpr double kMostOverOptimum = 1.15;

// Returns the scratch that the kernel of each instruction asks for beside its operands and results.
std::vector<int64_t> ScratchOf(const ExecProgram& program, const BoundProgram& bound) {
  std::vector<int64_t> scratch(program.instructions.size());
  for (const BoundProgram::Session& session : bound.sessions()) {
    for (size_t i = session.range.begin; i < session.range.end; ++i) {
      scratch[At(bound.segments()[i])] = session.prepared->scratch_bytes(i - session.range.begin);
    }
  }
  return scratch;
}

absl::StatusOr<BufferPlan> PlanWithoutScratch(const ExecProgram& program, const BoundProgram& bound) {
  const std::vector<std::optional<OperandView>> views = FindViews(program, bound.slot_types());
  // The bodies decide what is written in place, and belong to the binding.
  std::vector<std::unique_ptr<const MicroProgram>> micro_programs(program.instructions.size());
  for (size_t i = 0; i < micro_programs.size(); ++i) {
    const MicroProgram* const micro = bound.micro_program(static_cast<int32_t>(i));
    if (micro != nullptr) micro_programs[i] = std::make_unique<const MicroProgram>(*micro);
  }
  return PlanBuffers(
      {.program = program, .slot_types = bound.slot_types(), .views = views, .micro_programs = micro_programs});
}

struct Setting {
  std::string name;
  std::vector<std::string> disabled_passes;
};

class PeakMemory : public testing::TestWithParam<BackendUnderTest> {
 protected:
  const std::unique_ptr<Backend> backend_ = GetParam().make();
};

// Each thread of the CPU has scratch of its own.
INSTANTIATE_TEST_SUITE_P(Backends, PeakMemory,
                         testing::Values(BackendUnderTest{"cpu", [] { return MakeCpuBackend({.threads = 1}); }},
                                         kCpuAndCuda[1]),
                         NameOfBackend());

TEST_P(PeakMemory, IsCloseToWhatIsAliveOnTheGraphsOfTheBenchmarks) {
  const bool is_cpu = !GetParam().compiles;
  std::vector<Setting> settings = {{"all passes", {}}};
  if (is_cpu) settings.push_back({"without fusion", {"fuse"}});
  for (const Setting& setting : settings) {
    std::cout << absl::StrFormat("%-28s %14s %14s %14s %7s %14s %8s %10s   (%s)\n", "graph", "planned", "values",
                                 "and needed", "ratio", "scratch", "without", "workspace", setting.name);
    for (const BenchGraph& bench : AllBenchGraphs()) {
      SCOPED_TRACE(bench.name);
      const auto program = Compile(bench.build(1), {.device = "cpu:0", .disabled_passes = setting.disabled_passes},
                                   Fingerprint(), backend_.get());
      ASSERT_TRUE(program.ok()) << program.status();
      std::vector<ConcreteType> arguments;
      for (size_t i = 0; i < (*program)->program().inputs.size(); ++i) {
        arguments.push_back(ToConcreteType((*program)->program().slot_types[i]));
      }
      const auto bound = (*program)->Bind(arguments);
      ASSERT_TRUE(bound.ok()) << bound.status();
      const BufferPlan& plan = (*bound)->plan();
      const auto without_scratch = PlanWithoutScratch((*program)->program(), **bound);
      ASSERT_TRUE(without_scratch.ok()) << without_scratch.status();
      const std::vector<int64_t> scratch = ScratchOf((*program)->program(), **bound);
      const std::vector<ExecInstruction>& instructions = (*program)->program().instructions;
      std::vector<int64_t> needed(instructions.size());
      if (!is_cpu) needed = scratch;
      for (size_t i = 0; i < instructions.size() && is_cpu; ++i) {
        for (const NeededScratch& need : bench.needs) {
          if (instructions[i].op->name != need.op) continue;
          needed[i] = need.bytes;
          // The declared need is used.
          EXPECT_LE(need.bytes, scratch[i]) << need.reason;
        }
      }
      const int64_t values = LivenessOptimum((*program)->program(), **bound, std::vector<int64_t>(needed.size()));
      const int64_t optimum = LivenessOptimum((*program)->program(), **bound, needed);
      const auto over = [](const BufferPlan& of, int64_t least) {
        return least == 0 ? 1 : static_cast<double>(PlannedBytes(of)) / static_cast<double>(least);
      };
      std::cout << absl::StrFormat("%-28s %14d %14d %14d %7.3f %14d %8.3f %10d\n", bench.name, PlannedBytes(plan),
                                   values, optimum, over(plan, optimum),
                                   *std::max_element(scratch.begin(), scratch.end()), over(*without_scratch, values),
                                   (*bound)->workspace_bytes());
      EXPECT_LE(over(plan, optimum), kMostOverOptimum);
      const bool needs_scratch =
          is_cpu ? !bench.needs.empty() : std::any_of(scratch.begin(), scratch.end(), [](int64_t s) { return s > 0; });
      if (!needs_scratch) {
        EXPECT_LE(over(*without_scratch, values), kMostOverOptimum);
      }
      if (is_cpu) {
        EXPECT_LE((*bound)->workspace_bytes(), cpu::kMaxWorkspaceBytes);
      }
    }
  }
}

// The gradient of a network of 64 layers with respect to its weights, F32, 4,096 rows of 128.
Graph DeepGradient(int64_t kept_every) {
  constexpr int64_t kLayers = 64, kRows = 4096, kWidth = 128;
  StaticGraphBuilder g("deep");
  ValueId x = g.Input("x", DType::kF32, {kRows, kWidth});
  DerivativeRequest request{.mode = DerivativeMode::kGrad, .keep_outputs = true};
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    request.wrt.push_back(absl::StrCat("w", layer));
    x = g.Unary(CoreOp::kTanh, g.Dot(x, g.Input(request.wrt.back(), DType::kF32, {kWidth, kWidth}), {1}, {0}));
  }
  g.Output("loss", g.Reduce(ReduceKind::kSum, g.Binary(CoreOp::kMultiply, x, x), {0, 1}));
  const Graph network = g.Take();
  int64_t layer = 0;
  for (const Node& node : network.nodes()) {
    if (!Is(*node.op, CoreOp::kTanh) || kept_every == 0) continue;
    if (++layer % kept_every == 0) request.checkpoints.push_back(node.name);
  }
  absl::StatusOr<Graph> gradient = Differentiate(network, request);
  EXPECT_TRUE(gradient.ok()) << gradient.status();
  return gradient.ok() ? *std::move(gradient) : Graph();
}

TEST_P(PeakMemory, OfADeepGradientFallsWithCheckpoints) {
  std::vector<int64_t> planned;
  for (const int64_t kept_every : {0, 8}) {
    const auto program = Compile(DeepGradient(kept_every), {.device = "cpu:0"}, Fingerprint(), backend_.get());
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<ConcreteType> arguments;
    for (size_t i = 0; i < (*program)->program().inputs.size(); ++i) {
      arguments.push_back(ToConcreteType((*program)->program().slot_types[i]));
    }
    const auto bound = (*program)->Bind(arguments);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const int64_t optimum = LivenessOptimum((*program)->program(), **bound,
                                            std::vector<int64_t>((*program)->program().instructions.size()));
    planned.push_back(PlannedBytes((*bound)->plan()));
    std::cout << absl::StrFormat("64 layers, %-22s %10d bytes planned, %10d alive, peak with arguments %10d\n",
                                 kept_every == 0 ? "every value kept" : absl::StrCat("each ", kept_every, "th kept"),
                                 planned.back(), optimum, (*bound)->plan().peak_bytes);
    EXPECT_LE(static_cast<double>(planned.back()), kMostOverOptimum * static_cast<double>(optimum));
  }
  // 64 activations and 64 gradients, against 8 + 8 activations and the gradients.
  EXPECT_LT(planned[1], planned[0] / 2);
}

}  // namespace
}  // namespace tensord
