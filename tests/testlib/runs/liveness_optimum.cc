#include "tests/testlib/runs/liveness_optimum.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/base/at.h"
#include "engine/exec/backend/overwrites.h"
#include "engine/exec/memory/buffer_plan.h"
#include "engine/exec/program/value_views.h"

namespace tensord {
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

int64_t PlannedBytes(const BufferPlan& plan) {
  return std::accumulate(plan.result_bytes.begin(), plan.result_bytes.end(), plan.arena_bytes);
}

}  // namespace tensord
