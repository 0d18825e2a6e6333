#include "engine/ops/leaves.h"

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/ops/structural.h"

namespace tensord {

absl::StatusOr<ResultTypes> InferConstant(InferContext& context) {
  return ResultTypes{ToTensorType(context.attrs().GetLiteral("value")->type())};
}

absl::Status ReferenceConstant(const ReferenceCall& call) {
  call.results[0] = *call.attrs.GetLiteral("value");
  return absl::OkStatus();
}

PermutedCall PermuteConstant(const PermuteContext& context) {
  const AxisOrder order = NaturalOrder(context.result.rank(), context.reversed_is_natural);
  PermutedCall call{.attrs = context.attrs, .result_order = order};
  call.attrs.Set("value",
                 std::make_shared<const Literal>(TransposeLiteral(*context.attrs.GetLiteral("value"), Inverse(order))));
  return call;
}

absl::StatusOr<ResultTypes> InferIota(InferContext& context) {
  const TensorType& type = context.attrs().Type("type");
  RETURN_IF_ERROR(CheckDType(type.dtype, kNumbers, "the result"));
  RETURN_IF_ERROR(CheckAxis(context.attrs().Int("dimension"), type.rank(), "dimension"));
  return ResultTypes{type};
}

absl::Status ReferenceIota(const ReferenceCall& call) {
  const size_t axis = static_cast<size_t>(call.attrs.Int("dimension"));
  Literal& result = call.results[0];
  VisitDType(result.dtype(), [&]<typename T>(TypeTag<T>) {
    const auto out = result.mutable_values<T>();
    for (IndexWalk i(result.shape()); !i.done(); i.Next()) {
      out[static_cast<size_t>(i.linear())] = scalar::ConvertElement<T>(i[axis]);
    }
  });
  return absl::OkStatus();
}

PermutedCall PermuteIota(const PermuteContext& context) {
  const AxisOrder order = NaturalOrder(context.result.rank(), context.reversed_is_natural);
  PermutedCall call{.attrs = context.attrs, .result_order = order};
  TensorType type = context.attrs.Type("type");
  type.shape = ToStored(type.shape, order);
  call.attrs.Set("type", std::move(type));
  call.attrs.Set("dimension", order[static_cast<size_t>(context.attrs.Int("dimension"))]);
  return call;
}

}  // namespace tensord
