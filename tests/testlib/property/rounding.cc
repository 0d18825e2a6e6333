#include "tests/testlib/property/rounding.h"

#include "engine/ops/core_ops.h"

namespace tensord::property {
bool IsExactOp(CoreOp op, const Attributes& attrs, DType operand, DType result) {
  if (!kInexact.Contains(operand) || !kInexact.Contains(result)) return true;
  const bool complex = kComplexes.Contains(operand);
  switch (op) {
    case CoreOp::kExp:
    case CoreOp::kLog:
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTan:
    case CoreOp::kTanh:
    case CoreOp::kRsqrt:
    case CoreOp::kExpm1:
    case CoreOp::kLog1p:
    case CoreOp::kLogistic:
    case CoreOp::kErf:
    case CoreOp::kCbrt:
    case CoreOp::kSinh:
    case CoreOp::kCosh:
    case CoreOp::kAsin:
    case CoreOp::kAcos:
    case CoreOp::kAtan:
    case CoreOp::kAsinh:
    case CoreOp::kAcosh:
    case CoreOp::kAtanh:
    case CoreOp::kLog2:
    case CoreOp::kLog10:
    case CoreOp::kExp2:
    case CoreOp::kPow:
    case CoreOp::kAtan2:
    case CoreOp::kDotGeneral:
      return false;
    case CoreOp::kAbs:
    case CoreOp::kSign:
    case CoreOp::kSqrt:
    case CoreOp::kMultiply:
    case CoreOp::kDivide:
      return !complex;
    case CoreOp::kReduce: {
      const auto kind = static_cast<ReduceKind>(attrs.Int("kind"));
      return !complex && kind != ReduceKind::kSum && kind != ReduceKind::kProduct;
    }
    default:
      return true;
  }
}

bool NeedsExactOperand(CoreOp op, size_t /*operand_index*/, DType operand, DType result) {
  if (!kInexact.Contains(operand)) return false;
  const bool complex = kComplexes.Contains(operand);
  switch (op) {
    case CoreOp::kSign:
    case CoreOp::kFloor:
    case CoreOp::kCeil:
    case CoreOp::kRoundNearestEven:
    case CoreOp::kIsFinite:
    case CoreOp::kTan:
    case CoreOp::kPow:
    case CoreOp::kRemainder:
    case CoreOp::kCompare:
      return true;
    case CoreOp::kExp:
    case CoreOp::kLog:
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTanh:
    case CoreOp::kSqrt:
    case CoreOp::kRsqrt:
    case CoreOp::kExpm1:
    case CoreOp::kLog1p:
    case CoreOp::kLogistic:
    case CoreOp::kErf:
    case CoreOp::kCbrt:
    case CoreOp::kSinh:
    case CoreOp::kCosh:
    case CoreOp::kAsin:
    case CoreOp::kAcos:
    case CoreOp::kAtan:
    case CoreOp::kAsinh:
    case CoreOp::kAcosh:
    case CoreOp::kAtanh:
    case CoreOp::kLog2:
    case CoreOp::kLog10:
    case CoreOp::kExp2:
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
    case CoreOp::kClamp:
    case CoreOp::kReduce:  // by MAX and MIN
      return complex;
    case CoreOp::kConvert:
      return !kInexact.Contains(result);
    default:
      return false;
  }
}

}  // namespace tensord::property
