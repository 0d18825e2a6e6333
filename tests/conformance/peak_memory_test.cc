#include <algorithm>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernel.h"
#include "engine/exec/buffer_plan.h"
#include "engine/exec/overwrites.h"
#include "engine/runtime/compiler.h"
#include "gtest/gtest.h"
#include "tests/testlib/bench_graphs.h"

namespace tensord {
namespace {

// What a run may take, with what kernels need besides, over the values that are alive at once. What kernels keep in the
// processor's caches, the workspace of a session, is a few MiB however large the values are: a bound of its own.
constexpr double kMostOverOptimum = 1.15;

size_t At(int32_t index) { return static_cast<size_t>(index); }

// The most bytes of temporaries and results that are alive during one instruction: an operand counts up to its last
// reader, an output to the end, and a result that may be written over an operand that is read last with it once.
// Counted from the readers themselves; views are taken from the binding. `scratch` is alive with its instruction.
int64_t LivenessOptimum(const ExecProgram& program, const BoundProgram& bound, absl::Span<const int64_t> scratch) {
  const std::vector<ConcreteType>& types = bound.slot_types();
  const std::vector<std::optional<OperandView>> views = FindViews(program, types);
  const int32_t count = static_cast<int32_t>(program.instructions.size());
  std::vector<Slot> owner(types.size());
  std::iota(owner.begin(), owner.end(), 0);
  std::vector<int32_t> birth(types.size(), -1), death(types.size(), -1);  // by owner; -1: a leaf
  for (int32_t i = 0; i < count; ++i) {
    const ExecInstruction& instruction = program.instructions[At(i)];
    for (Slot slot : instruction.operands) death[At(owner[At(slot)])] = i;
    if (views[At(i)].has_value()) {
      owner[At(instruction.results[0])] = owner[At(instruction.operands[0])];
      continue;
    }
    for (Slot slot : instruction.results) birth[At(slot)] = death[At(slot)] = i;
  }
  for (const ProgramOutput& output : program.outputs) death[At(owner[At(output.slot)])] = count;

  std::vector<int64_t> alive(At(count) + 2);
  for (size_t slot = 0; slot < types.size(); ++slot) {
    if (owner[slot] != static_cast<Slot>(slot) || birth[slot] < 0) continue;
    alive[At(birth[slot])] += types[slot].num_bytes();
    alive[At(death[slot]) + 1] -= types[slot].num_bytes();
  }
  int64_t now = 0, most = 0;
  for (int32_t i = 0; i < count; ++i) {
    now += alive[At(i)];
    const ExecInstruction& instruction = program.instructions[At(i)];
    int64_t shared = 0;
    std::vector<Slot> used;  // operands that are written over, and results that write
    if (!views[At(i)].has_value()) {
      for (const auto& [result, operand] : MayOverwrite(instruction, bound.micro_program(i))) {
        const Slot to = instruction.results[At(result)], over = owner[At(instruction.operands[At(operand)])];
        const int64_t bytes = types[At(to)].num_bytes();
        const bool is_free = birth[At(over)] >= 0 && death[At(over)] == i && types[At(over)].num_bytes() == bytes;
        if (!is_free || std::find(used.begin(), used.end(), to) != used.end() ||
            std::find(used.begin(), used.end(), over) != used.end()) {
          continue;
        }
        used.insert(used.end(), {to, over});
        shared += bytes;
      }
    }
    most = std::max(most, now - shared + scratch[At(i)]);
  }
  return most;
}

int64_t ResultBytes(const BufferPlan& plan) {
  return std::accumulate(plan.result_bytes.begin(), plan.result_bytes.end(), int64_t{0});
}

// What the kernel of each instruction asks for beside its operands and results.
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

TEST(PeakMemory, IsCloseToWhatIsAliveOnTheGraphsOfTheBenchmarks) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1});
  const std::vector<Setting> settings = {{"all passes", {}}, {"without fusion", {"fuse"}}};
  for (const Setting& setting : settings) {
    std::cout << absl::StrFormat("%-28s %14s %14s %14s %7s %14s %8s %10s   (%s)\n", "graph", "arena bytes",
                                 "result bytes", "alive at once", "ratio", "scratch bytes", "without", "workspace",
                                 setting.name);
    for (const BenchGraph& bench : AllBenchGraphs()) {
      SCOPED_TRACE(bench.name);
      const auto program = Compile(bench.build(1), {.device = "cpu:0", .disabled_passes = setting.disabled_passes},
                                   Fingerprint(), backend.get());
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
      const int64_t optimum = LivenessOptimum((*program)->program(), **bound,
                                              std::vector<int64_t>((*program)->program().instructions.size()));
      const int64_t with_scratch = LivenessOptimum((*program)->program(), **bound, scratch);
      const auto over_optimum = [&](const BufferPlan& of) {
        return optimum == 0 ? 1 : static_cast<double>(of.arena_bytes + ResultBytes(of)) / static_cast<double>(optimum);
      };
      std::cout << absl::StrFormat("%-28s %14d %14d %14d %7.3f %14d %8.3f %10d\n", bench.name, plan.arena_bytes,
                                   ResultBytes(plan), optimum, over_optimum(plan),
                                   *std::max_element(scratch.begin(), scratch.end()), over_optimum(*without_scratch),
                                   (*bound)->workspace_bytes());
      if (bench.works_in_scratch) {
        EXPECT_LE(static_cast<double>(plan.arena_bytes + ResultBytes(plan)),
                  kMostOverOptimum * static_cast<double>(with_scratch));
      } else {
        EXPECT_LE(over_optimum(*without_scratch), kMostOverOptimum);
        EXPECT_LE(over_optimum(plan), kMostOverOptimum);
      }
      EXPECT_LE((*bound)->workspace_bytes(), cpu::kMaxWorkspaceBytes);
    }
  }
}

}  // namespace
}  // namespace tensord
