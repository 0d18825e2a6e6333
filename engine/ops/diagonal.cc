#include "engine/ops/diagonal.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/element_copy.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

// Return the place of an axis after another one is taken out before or after it, and after one is put in at a position.
int64_t WithoutAxis(int64_t axis, int64_t removed) { return axis > removed ? axis - 1 : axis; }
int64_t WithAxis(int64_t axis, int64_t inserted) { return axis >= inserted ? axis + 1 : axis; }

}  // namespace

absl::StatusOr<ResultTypes> InferExtractDiag(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const int64_t axes[] = {context.attrs().Int("axis_a"), context.attrs().Int("axis_b")};
  RETURN_IF_ERROR(CheckAxis(axes[0], operand.rank(), "axis_a"));
  RETURN_IF_ERROR(CheckAxis(axes[1], operand.rank(), "axis_b"));
  RETURN_IF_ERROR(CheckAxes(axes, operand.rank(), "(axis_a, axis_b)"));
  const size_t a = static_cast<size_t>(axes[0]), b = static_cast<size_t>(axes[1]);
  RETURN_IF_ERROR(context.RequireEqual(operand.shape[a], operand.shape[b],
                                       absl::StrCat("axes ", a, " and ", b, " of a diagonal must have one size")));
  TensorType result = operand;
  result.shape.erase(result.shape.begin() + axes[1]);
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceExtractDiag(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const int64_t a = call.attrs.Int("axis_a"), b = call.attrs.Int("axis_b");
  const Shape strides = ColumnMajorStrides(in.shape());
  for (IndexWalk i(call.results[0].shape()); !i.done(); i.Next()) {
    int64_t at = i[static_cast<size_t>(WithoutAxis(a, b))] * strides[static_cast<size_t>(b)];
    for (size_t k = 0; k < i.index().size(); ++k) {
      at += i[k] * strides[static_cast<size_t>(WithAxis(static_cast<int64_t>(k), b))];
    }
    CopyElement(in, at, &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

PermutedCall PermuteExtractDiag(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}};
  const int64_t b = context.attrs.Int("axis_b"), stored_b = order[static_cast<size_t>(b)];
  for (int64_t i = 0; i < context.result.rank(); ++i) {
    call.result_order.push_back(WithoutAxis(order[static_cast<size_t>(WithAxis(i, b))], stored_b));
  }
  call.attrs.Set("axis_a", order[static_cast<size_t>(context.attrs.Int("axis_a"))]);
  call.attrs.Set("axis_b", stored_b);
  return call;
}

absl::StatusOr<ResultTypes> InferEmbedDiag(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const int64_t a = context.attrs().Int("axis_a"), b = context.attrs().Int("axis_b");
  RETURN_IF_ERROR(CheckAxis(a, operand.rank(), "axis_a"));
  RETURN_IF_ERROR(CheckAxis(b, operand.rank() + 1, "axis_b"));
  TensorType result = operand;
  result.shape.insert(result.shape.begin() + b, Dim(operand.shape[static_cast<size_t>(a)]));
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceEmbedDiag(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const int64_t a = call.attrs.Int("axis_a"), b = call.attrs.Int("axis_b");
  const Shape strides = ColumnMajorStrides(call.results[0].shape());
  for (IndexWalk i(in.shape()); !i.done(); i.Next()) {
    int64_t at = i[static_cast<size_t>(a)] * strides[static_cast<size_t>(b)];
    for (size_t k = 0; k < i.index().size(); ++k) {
      at += i[k] * strides[static_cast<size_t>(WithAxis(static_cast<int64_t>(k), b))];
    }
    CopyElement(in, i.linear(), &call.results[0], at);
  }
  return absl::OkStatus();
}

PermutedCall PermuteEmbedDiag(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  const int64_t rank = static_cast<int64_t>(order.size()), b = context.attrs.Int("axis_b");
  // The new axis may lie anywhere: where it continues the operand's order.
  const bool identity = IsIdentity(order), is_reversed = order == ReversedOrder(rank);
  const bool reversed = identity == is_reversed ? context.reversed_is_natural : is_reversed;
  const int64_t stored_b = reversed ? rank - b : b;
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order}};
  for (int64_t i = 0; i <= rank; ++i) {
    call.result_order.push_back(i == b ? stored_b : WithAxis(order[static_cast<size_t>(WithoutAxis(i, b))], stored_b));
  }
  call.attrs.Set("axis_a", order[static_cast<size_t>(context.attrs.Int("axis_a"))]);
  call.attrs.Set("axis_b", stored_b);
  return call;
}

}  // namespace tensord
