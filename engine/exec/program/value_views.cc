#include "engine/exec/program/value_views.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "engine/base/at.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// A view that keeps a temporary alive for itself has at least this part of its bytes.
constexpr int64_t kLeastKeptPart = 2;

// Tells whether axes of more than one element come in the same order: `result_axis[i]` is the place of operand axis i.
bool KeepsOrder(const Shape& operand, absl::Span<const int64_t> result_axis) {
  int64_t last = -1;
  for (size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == 1) continue;
    if (result_axis[i] < last) return false;
    last = result_axis[i];
  }
  return true;
}

bool IsViewReshape(const ExecInstruction& instruction, const Shape& operand, const Shape& result) {
  if (IsAlwaysView(instruction)) return true;
  // Axes of size 1 are all that comes and goes: then the two orders are one.
  const auto larger = [](const Shape& shape) {
    Shape sizes;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(sizes), [](int64_t size) { return size != 1; });
    return sizes;
  };
  return larger(operand) == larger(result);
}

bool IsViewTranspose(const ExecInstruction& instruction, const Shape& operand) {
  const std::vector<int64_t>& permutation = instruction.attrs.Ints("permutation");
  absl::InlinedVector<int64_t, 6> result_axis(operand.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result_axis[At(static_cast<Slot>(permutation[i]))] = static_cast<int64_t>(i);
  return KeepsOrder(operand, result_axis);
}

// One piece: all of the fast axes, a range of one axis, one index of each slower one.
std::optional<OperandView> ViewOfSlice(const ExecInstruction& instruction, const ConcreteType& operand,
                                       const Shape& result) {
  const std::vector<int64_t>& starts = instruction.attrs.Ints("start_indices");
  const std::vector<int64_t>& strides = instruction.attrs.Ints("strides");
  OperandView view;
  int64_t step_bytes = SizeOf(operand.dtype);
  bool is_cut = false;  // along a faster axis
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t stride = strides.empty() ? 1 : strides[i];
    if (result[i] > 1 && (is_cut || stride != 1)) return std::nullopt;
    is_cut = is_cut || result[i] != operand.shape[i];
    view.offset_bytes += starts[i] * step_bytes;
    step_bytes *= operand.shape[i];
  }
  return view;
}

}  // namespace

std::optional<OperandView> ViewOf(const ExecInstruction& instruction, const ConcreteType& operand,
                                  const ConcreteType& result) {
  const OpDef& op = *instruction.op;
  if (Is(op, CoreOp::kOptimizationBarrier)) return OperandView{};
  const bool is_slice = Is(op, CoreOp::kSlice);
  if (!is_slice && !Is(op, CoreOp::kReshape) && !Is(op, CoreOp::kTranspose) && !Is(op, CoreOp::kBroadcastInDim)) {
    return std::nullopt;
  }
  if (result.num_elements() == 0) return OperandView{};
  if (is_slice) return ViewOfSlice(instruction, operand, result.shape);
  if (result.num_elements() != operand.num_elements()) return std::nullopt;
  const bool is_view = Is(op, CoreOp::kReshape) ? IsViewReshape(instruction, operand.shape, result.shape)
                       : Is(op, CoreOp::kTranspose)
                           ? IsViewTranspose(instruction, operand.shape)
                           : KeepsOrder(operand.shape, instruction.attrs.Ints("broadcast_dimensions"));
  return is_view ? std::make_optional(OperandView{}) : std::nullopt;
}

bool IsAlwaysView(const ExecInstruction& instruction) {
  if (Is(*instruction.op, CoreOp::kOptimizationBarrier)) return true;
  return Is(*instruction.op, CoreOp::kReshape) &&
         static_cast<Order>(instruction.attrs.Int("order")) != Order::kRowMajor;
}

std::vector<int32_t> LastReads(const ExecProgram& program) {
  std::vector<int32_t> last(program.slot_types.size(), kNeverRead);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const ExecInstruction& instruction = program.instructions[i];
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      last[At(instruction.operands[k])] = instruction.last_use[k] ? static_cast<int32_t>(i) : kReadToTheEnd;
    }
  }
  for (const ProgramOutput& output : program.outputs) last[At(output.slot)] = kReadToTheEnd;
  return last;
}

std::vector<std::optional<OperandView>> FindViews(const ExecProgram& program,
                                                  absl::Span<const ConcreteType> slot_types) {
  const std::vector<int32_t> last_reads = LastReads(program);
  std::vector<std::optional<OperandView>> views(program.instructions.size());
  // By slot: the instruction's result whose memory it shares; -1: a leaf. The last read of its views counts as the
  // memory's.
  std::vector<Slot> root(slot_types.size(), -1);
  std::vector<int32_t> kept_until(slot_types.size(), kNeverRead);
  for (size_t i = 0; i < views.size() && !StopRequested(); ++i) {
    const ExecInstruction& instruction = program.instructions[i];
    for (Slot slot : instruction.results) {
      root[At(slot)] = slot;
      kept_until[At(slot)] = last_reads[At(slot)];
    }
    if (instruction.operands.empty()) continue;
    const Slot result = instruction.results[0], operand = instruction.operands[0];
    const std::optional<OperandView> view = ViewOf(instruction, slot_types[At(operand)], slot_types[At(result)]);
    if (!view.has_value()) continue;
    const Slot whole = root[At(operand)];
    if (whole >= 0) {
      const bool is_small = slot_types[At(result)].num_bytes() < slot_types[At(whole)].num_bytes() / kLeastKeptPart;
      int32_t& until = kept_until[At(whole)];
      if (is_small && last_reads[At(result)] > until) continue;
      until = std::max(until, last_reads[At(result)]);
    }
    root[At(result)] = whole;
    views[i] = view;
  }
  return views;
}

}  // namespace tensord
