#include "engine/ops/elementwise.h"

#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"

namespace tensord {

absl::StatusOr<ResultTypes> InferElementwise(InferContext& context, DTypeSet dtypes, DType (*result_dtype)(DType)) {
  const TensorType& first = context.operand(0);
  RETURN_IF_ERROR(CheckDType(first.dtype, dtypes, "the operand"));
  if (context.num_operands() == 2) {
    RETURN_IF_ERROR(CheckSameDType(first, context.operand(1), "lhs and rhs"));
    RETURN_IF_ERROR(context.RequireSameShape(first, context.operand(1), "lhs and rhs"));
  }
  return ResultTypes{{.dtype = result_dtype(first.dtype), .shape = first.shape}};
}

PermutedCall PermuteElementwise(const PermuteContext& context) {
  const int64_t rank = context.result.rank();
  AxisOrder chosen = NaturalOrder(rank, context.reversed_is_natural);
  for (size_t i = 0; i < context.operands.size(); ++i) {
    if (context.operands[i]->rank() == rank) {
      chosen = context.orders[i];
      break;
    }
  }
  PermutedCall call{.attrs = context.attrs, .result_order = chosen};
  for (const TensorType* operand : context.operands) {
    call.operand_orders.push_back(operand->rank() == rank ? chosen : IdentityOrder(operand->rank()));
  }
  return call;
}

}  // namespace tensord
