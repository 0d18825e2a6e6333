#include "engine/exec/backend/overwrites.h"

#include "engine/ops/core_ops.h"

namespace tensord {

OverwritePairs MayOverwrite(const ExecInstruction& instruction, const MicroProgram* micro) {
  OverwritePairs pairs;
  if (micro != nullptr) {
    for (const std::pair<int32_t, int32_t>& pair : InPlacePairs(*micro)) pairs.push_back(pair);
  } else if (instruction.op->has(kElementwise)) {
    for (size_t i = 0; i < instruction.operands.size(); ++i) pairs.emplace_back(0, static_cast<int32_t>(i));
  } else if (Is(*instruction.op, CoreOp::kDynamicUpdateSlice) || Is(*instruction.op, CoreOp::kScatter)) {
    pairs.emplace_back(0, 0);
  }
  return pairs;
}

}  // namespace tensord
