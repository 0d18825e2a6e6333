#include "engine/exec/backend/lone_elementwise.h"

#include <algorithm>
#include <utility>

#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

MicroKind KindOf(CoreOp op, size_t operands) {
  switch (op) {
    case CoreOp::kCompare:
      return MicroKind::kCompare;
    case CoreOp::kSelect:
      return MicroKind::kSelect;
    case CoreOp::kClamp:
      return MicroKind::kClamp;
    case CoreOp::kConvert:
      return MicroKind::kConvert;
    default:
      return operands == 1 ? MicroKind::kUnary : MicroKind::kBinary;
  }
}

}  // namespace

std::optional<MicroProgram> ElementwiseProgram(const BoundInstruction& instruction) {
  const OpDef& op = *instruction.op;
  if (op.op_class == OpClass::kExtension || !op.has(kElementwise) || instruction.results.size() != 1)
    return std::nullopt;
  const ConcreteType& result = instruction.results[0];
  const CoreOp core = static_cast<CoreOp>(op.index);
  MicroInstruction computed{.kind = KindOf(core, instruction.operands.size()), .dtype = result.dtype, .op = core};
  if (core == CoreOp::kCompare) {
    computed.direction = static_cast<CompareDirection>(instruction.attrs->Int("direction"));
  }
  MicroProgram program;
  program.axes.push_back({.size = result.num_elements()});
  if (instruction.operands.size() > computed.operands.size()) return std::nullopt;
  for (size_t k = 0; k < instruction.operands.size(); ++k) {
    const ConcreteType& operand = instruction.operands[k];
    const bool is_full = operand.num_elements() == result.num_elements();
    if (!is_full && operand.num_elements() != 1) return std::nullopt;
    program.tensors.push_back(operand.dtype);
    program.instructions.push_back({.kind = MicroKind::kLoad,
                                    .level = is_full ? MicroLevel::kFull : MicroLevel::kUniform,
                                    .dtype = operand.dtype,
                                    .tensor = static_cast<int32_t>(k),
                                    .access = {.offset = 0, .strides = {is_full ? 1 : 0}}});
    computed.operands[k] = static_cast<int32_t>(k);
  }
  program.results.push_back({.value = static_cast<int32_t>(program.instructions.size())});
  program.instructions.push_back(std::move(computed));
  return program;
}

}  // namespace tensord
