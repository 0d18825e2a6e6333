#include "engine/exec/program/changing_memory.h"

#include <cstddef>
#include <utility>

#include "engine/base/at.h"
#include "engine/exec/program/value_views.h"
#include "engine/fusion/fused_op.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Tells whether elements are only loaded, computed with, and stored. Functions get them by value, and tables are looked
// up in registers. Kernels of other families may use them in any way.
bool IsArithmetic(const OpDef& op) {
  return (op.has(kElementwise) && op.op_class != OpClass::kExtension) || IsFused(op) || IsAffineDot(op) ||
         Is(op, CoreOp::kDotGeneral) || Is(op, CoreOp::kReduce);
}

// Elements come out as they went in, or their memory does.
bool IsLayout(const OpDef& op) {
  return Is(op, CoreOp::kTranspose) || Is(op, CoreOp::kReshape) || Is(op, CoreOp::kBroadcastInDim) ||
         Is(op, CoreOp::kSlice) || Is(op, CoreOp::kOptimizationBarrier);
}

// Elements are stored where the operands and the shapes say, and the result is not read.
bool OnlyMoves(const OpDef& op) {
  return IsLayout(op) || Is(op, CoreOp::kPad) || Is(op, CoreOp::kConcatenate) || Is(op, CoreOp::kReverse) ||
         Is(op, CoreOp::kGather) || Is(op, CoreOp::kDynamicSlice);
}

bool HoldsNumbers(const TensorType& type) { return kFloats.Contains(type.dtype) || kComplexes.Contains(type.dtype); }

// Returns by slot whether all its readers tolerate changes. `may_change` tells the same of outputs as outputs.
std::vector<bool> WithReaders(const ExecProgram& program, std::vector<bool> may_change) {
  const auto bars = [&](const ExecInstruction& reader, size_t i) {
    if (i > 0 && Is(*reader.op, CoreOp::kOptimizationBarrier)) return false;  // waited for, and not read
    const TensorType& type = program.slot_types[At(reader.operands[i])];
    // Bytes that are no value of their dtype stay where they are.
    const bool stays = HoldsNumbers(type) || IsAlwaysView(reader);
    if (IsLayout(*reader.op)) return i != 0 || !stays || !may_change[At(reader.results[0])];
    return !IsArithmetic(*reader.op) || !HoldsNumbers(type);
  };
  for (auto reader = program.instructions.rbegin(); reader != program.instructions.rend(); ++reader) {
    for (size_t i = 0; i < reader->operands.size(); ++i) {
      if (bars(*reader, i)) may_change[At(reader->operands[i])] = false;
    }
  }
  return may_change;
}

}  // namespace

std::vector<bool> InputsThatMayChange(const ExecProgram& program) {
  std::vector<bool> may_change(program.slot_types.size());
  for (size_t slot = 0; slot < may_change.size(); ++slot) may_change[slot] = HoldsNumbers(program.slot_types[slot]);
  for (const ProgramOutput& output : program.outputs) may_change[At(output.slot)] = false;
  may_change = WithReaders(program, std::move(may_change));
  may_change.resize(program.inputs.size());
  return may_change;
}

std::vector<bool> ResultsThatMayChange(const ExecProgram& program) {
  const std::vector<bool> readers_do_not_mind =
      WithReaders(program, std::vector<bool>(program.slot_types.size(), true));
  std::vector<bool> may_change(program.slot_types.size());
  for (const ExecInstruction& instruction : program.instructions) {
    if (!IsArithmetic(*instruction.op) && !OnlyMoves(*instruction.op)) continue;
    for (Slot slot : instruction.results) may_change[At(slot)] = readers_do_not_mind[At(slot)];
  }
  return may_change;
}

}  // namespace tensord
