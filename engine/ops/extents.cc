#include "engine/ops/extents.h"

#include <algorithm>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/element_copy.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

int64_t ReferenceAxis(const Attributes& attrs) {
  const std::vector<int64_t>& axis = attrs.Ints("reference_axis");
  return axis.empty() ? attrs.Int("dimension") : axis[0];
}

}  // namespace

absl::StatusOr<ResultTypes> InferShapeOf(InferContext& context) {
  RETURN_IF_ERROR(CheckAxis(context.attrs().Int("dimension"), context.operand(0).rank(), "dimension"));
  return ResultTypes{{.dtype = DType::kI64}};
}

absl::Status ReferenceShapeOf(const ReferenceCall& call) {
  const size_t axis = static_cast<size_t>(call.attrs.Int("dimension"));
  call.results[0].mutable_values<int64_t>()[0] = call.operands[0]->shape()[axis];
  return absl::OkStatus();
}

PermutedCall PermuteShapeOf(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}};
  call.attrs.Set("dimension", order[static_cast<size_t>(context.attrs.Int("dimension"))]);
  return call;
}

absl::StatusOr<ResultTypes> InferPadToMatch(InferContext& context) {
  const TensorType &operand = context.operand(0), &reference = context.operand(1);
  const int64_t dimension = context.attrs().Int("dimension");
  RETURN_IF_ERROR(CheckAxis(dimension, operand.rank(), "dimension"));
  const std::vector<int64_t>& renamed = context.attrs().Ints("reference_axis");
  if (renamed.empty()) {
    RETURN_IF_ERROR(CheckAxis(dimension, reference.rank(), "dimension, as an axis of the reference,"));
  } else {
    RETURN_IF_ERROR(CheckEngineAxes(renamed, 1, reference.rank(), "reference_axis"));
  }
  TensorType result = operand;
  Dim& padded = result.shape[static_cast<size_t>(dimension)];
  const Dim& wanted = reference.shape[static_cast<size_t>(ReferenceAxis(context.attrs()))];
  ASSIGN_OR_RETURN(padded.size, DimExpr::Maximum(padded.size, wanted.size));
  return ResultTypes{std::move(result)};
}

absl::Status ReferencePadToMatch(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const Shape strides = ColumnMajorStrides(call.results[0].shape());
  for (IndexWalk i(in.shape()); !i.done(); i.Next()) {
    int64_t at = 0;
    for (size_t k = 0; k < strides.size(); ++k) at += i[k] * strides[k];
    CopyElement(in, i.linear(), &call.results[0], at);
  }
  return absl::OkStatus();
}

PermutedCall PermutePadToMatch(const PermuteContext& context) {
  // The reference may stay as it is stored: only a size of it is read.
  PermutedCall call{.attrs = context.attrs,
                    .operand_orders = {context.orders[0], context.orders[1]},
                    .result_order = context.orders[0]};
  const int64_t dimension = context.orders[0][static_cast<size_t>(context.attrs.Int("dimension"))];
  const int64_t reference_axis = context.orders[1][static_cast<size_t>(ReferenceAxis(context.attrs))];
  call.attrs.Set("dimension", dimension);
  call.attrs.Set("reference_axis",
                 reference_axis == dimension ? std::vector<int64_t>() : std::vector<int64_t>{reference_axis});
  return call;
}

}  // namespace tensord
