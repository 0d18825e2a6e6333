#include "engine/passes/rewriting/elementwise.h"

#include "engine/ops/core_ops.h"

namespace tensord {

bool IsElementwise(const Node& node) {
  return node.body == nullptr && node.op->has(kElementwise) && node.num_results == 1 && !node.operands.empty();
}

bool IsCheap(const OpDef& op) {
  if (op.family != "core") return false;
  switch (static_cast<CoreOp>(op.index)) {
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
    case CoreOp::kMultiply:
    case CoreOp::kNegate:
    case CoreOp::kAbs:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kCompare:
    case CoreOp::kSelect:
    case CoreOp::kClamp:
    case CoreOp::kConvert:
    case CoreOp::kAnd:
    case CoreOp::kOr:
    case CoreOp::kXor:
    case CoreOp::kNot:
    case CoreOp::kConj:
      return true;
    default:
      return false;
  }
}

}  // namespace tensord
