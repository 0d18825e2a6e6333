#include "engine/exec/changing_inputs.h"

#include <cstddef>

#include "engine/fusion/fused_op.h"
#include "engine/ops/affine_dot.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Elements are loaded, computed with, and stored. Functions get them by value, and tables are looked up in registers.
// What kernels of other families do with them nobody here knows.
bool IsArithmetic(const OpDef& op) {
  return (op.has(kElementwise) && op.op_class != OpClass::kExtension) || IsFused(op) || IsAffineDot(op) ||
         Is(op, CoreOp::kDotGeneral) || Is(op, CoreOp::kReduce);
}

// Elements come out as they went in, or their memory does.
bool IsLayout(const OpDef& op) {
  return Is(op, CoreOp::kTranspose) || Is(op, CoreOp::kReshape) || Is(op, CoreOp::kBroadcastInDim) ||
         Is(op, CoreOp::kSlice);
}

}  // namespace

std::vector<bool> InputsThatMayChange(const ExecProgram& program) {
  std::vector<bool> may_change(program.slot_types.size());
  for (size_t slot = 0; slot < may_change.size(); ++slot) {
    const DType dtype = program.slot_types[slot].dtype;
    may_change[slot] = kFloats.Contains(dtype) || kComplexes.Contains(dtype);
  }
  for (const ProgramOutput& output : program.outputs) may_change[static_cast<size_t>(output.slot)] = false;
  for (auto it = program.instructions.rbegin(); it != program.instructions.rend(); ++it) {
    const bool is_layout = IsLayout(*it->op);
    if (IsArithmetic(*it->op)) continue;
    for (size_t i = 0; i < it->operands.size(); ++i) {
      const bool may_follow = is_layout && i == 0 && may_change[static_cast<size_t>(it->results[0])];
      if (!may_follow) may_change[static_cast<size_t>(it->operands[i])] = false;
    }
  }
  may_change.resize(program.inputs.size());
  return may_change;
}

}  // namespace tensord
