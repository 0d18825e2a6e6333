#include "backends/cpu/joins/split_reduction.h"

#include <cstddef>
#include <utility>

namespace tensord::cpu {
namespace {

bool IsReduction(const MicroInstruction& instruction) { return instruction.kind == MicroKind::kReduce; }

// The program after the reductions, along the axes that they keep.
class Rest {
 public:
  explicit Rest(const MicroProgram& whole) : whole_(whole), places_(whole.instructions.size(), -1) {
    rest_.tensors = whole.tensors;
    int64_t stride = 1;
    for (const MicroAxis& axis : whole.axes) {
      if (axis.is_reduced) continue;
      rest_.axes.push_back(axis);
      dense_.push_back(stride);
      stride *= axis.size;
    }
  }

  MicroProgram Take() && {
    for (size_t i = 0; i < whole_.instructions.size(); ++i) Add(i);
    for (const MicroResult& result : whole_.results) {
      rest_.results.push_back({.value = places_[static_cast<size_t>(result.value)]});
    }
    return std::move(rest_);
  }

 private:
  void Add(size_t index) {
    const MicroInstruction& instruction = whole_.instructions[index];
    if (instruction.level == MicroLevel::kFull) return;
    places_[index] = static_cast<int32_t>(rest_.instructions.size());
    if (IsReduction(instruction)) {
      rest_.instructions.push_back({.dtype = instruction.dtype,
                                    .tensor = static_cast<int32_t>(rest_.tensors.size()),
                                    .access = {.strides = dense_},
                                    .node = instruction.node});
      rest_.tensors.push_back(instruction.dtype);
      return;
    }
    MicroInstruction moved = instruction;
    if (moved.level == MicroLevel::kKept) moved.level = MicroLevel::kFull;
    moved.stage = 0;
    for (int32_t& operand : moved.operands) {
      if (operand >= 0) operand = places_[static_cast<size_t>(operand)];
    }
    moved.access.strides.clear();
    for (size_t d = 0; d < instruction.access.strides.size(); ++d) {
      if (!whole_.axes[d].is_reduced) moved.access.strides.push_back(instruction.access.strides[d]);
    }
    rest_.instructions.push_back(std::move(moved));
  }

  const MicroProgram& whole_;
  MicroProgram rest_;
  std::vector<int32_t> places_;  // of the instructions, in the rest
  absl::InlinedVector<int64_t, 6> dense_;
};

}  // namespace

std::optional<SplitReduction> Split(const MicroProgram& whole) {
  if (whole.num_stages() != 2) return std::nullopt;
  SplitReduction split{.reductions = whole};
  split.reductions.results.clear();
  for (size_t i = 0; i < whole.instructions.size(); ++i) {
    if (!IsReduction(whole.instructions[i])) continue;
    split.reductions.results.push_back({.value = static_cast<int32_t>(i)});
    split.kinds.push_back(whole.instructions[i].reduce);
  }
  bool are_reductions = whole.results.size() == split.kinds.size();
  for (size_t r = 0; r < whole.results.size(); ++r) {
    const int32_t value = whole.results[r].value;
    if (whole.instructions[static_cast<size_t>(value)].level != MicroLevel::kKept) return std::nullopt;
    are_reductions = are_reductions && value == split.reductions.results[r].value;
  }
  if (!are_reductions) split.rest = Rest(whole).Take();
  return split;
}

}  // namespace tensord::cpu
