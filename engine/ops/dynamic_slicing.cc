#include "engine/ops/dynamic_slicing.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/element_copy.h"
#include "engine/ops/index_walk.h"

namespace tensord {
namespace {

// One vector with an entry for every axis.
absl::Status CheckStarts(InferContext& context, const TensorType& starts, int64_t rank) {
  RETURN_IF_ERROR(CheckDType(starts.dtype, kIntegers, "start_indices"));
  if (starts.rank() != 1) {
    return Refuse(Refusal::kRankMismatch, absl::StrCat("start_indices must be one vector, and is ", ToString(starts)));
  }
  const std::vector<int64_t>& axes = context.attrs().Ints("start_axes");
  if (!axes.empty()) RETURN_IF_ERROR(CheckEngineAxes(axes, rank, rank, "start_axes"));
  return context.RequireEqual(starts.shape[0], Dim(rank),
                              "start_indices must have an entry for every axis; entries and rank are");
}

// Returns the begin of the window, by axis: moved so that the window lies inside.
Shape ClampedStarts(const Literal& starts, const std::vector<int64_t>& axes, const Shape& shape, const Shape& window) {
  Shape clamped(shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t axis = static_cast<size_t>(axes[i]);
    const int64_t start = starts.dtype() == DType::kI32 ? starts.values<int32_t>()[i] : starts.values<int64_t>()[i];
    clamped[axis] = std::max<int64_t>(0, std::min(start, shape[axis] - window[axis]));
  }
  return clamped;
}

// Position in storage of an element of the window.
int64_t PositionInWhole(const IndexWalk& i, const Shape& starts, const Shape& strides) {
  int64_t at = 0;
  for (size_t k = 0; k < starts.size(); ++k) at += (starts[k] + i[k]) * strides[k];
  return at;
}

// start_axes for an operand that is stored in `order`; unset if every entry is of its own axis.
void PermuteStarts(const PermuteContext& context, const AxisOrder& order, Attributes* attrs) {
  std::vector<int64_t> axes = MapAxes(StartAxes(context.attrs, static_cast<int64_t>(order.size())), order);
  if (IsIdentity(axes)) axes.clear();
  attrs->Set("start_axes", std::move(axes));
}

}  // namespace

std::vector<int64_t> StartAxes(const Attributes& attrs, int64_t rank) {
  const std::vector<int64_t>& axes = attrs.Ints("start_axes");
  if (!axes.empty()) return axes;
  const AxisOrder identity = IdentityOrder(rank);
  return {identity.begin(), identity.end()};
}

absl::StatusOr<ResultTypes> InferDynamicSlice(InferContext& context) {
  const TensorType& operand = context.operand(0);
  const std::vector<int64_t>& sizes = context.attrs().Ints("slice_sizes");
  RETURN_IF_ERROR(CheckLength(sizes.size(), operand.rank(), "slice_sizes"));
  RETURN_IF_ERROR(CheckStarts(context, context.operand(1), operand.rank()));
  TensorType result{.dtype = operand.dtype};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) {
      return Refuse(Refusal::kShapeMismatch, absl::StrCat("the slice size of axis ", i, " is negative: ", sizes[i]));
    }
    RETURN_IF_ERROR(
        context.RequireAtMost(sizes[i], operand.shape[i], absl::StrCat("the slice is longer than axis ", i)));
    result.shape.push_back(Dim(sizes[i]));
  }
  return ResultTypes{std::move(result)};
}

absl::Status ReferenceDynamicSlice(const ReferenceCall& call) {
  const Literal& in = *call.operands[0];
  const Shape& window = call.results[0].shape();
  const std::vector<int64_t> axes = StartAxes(call.attrs, in.type().rank());
  const Shape starts = ClampedStarts(*call.operands[1], axes, in.shape(), window);
  const Shape strides = ColumnMajorStrides(in.shape());
  for (IndexWalk i(window); !i.done(); i.Next()) {
    CopyElement(in, PositionInWhole(i, starts, strides), &call.results[0], i.linear());
  }
  return absl::OkStatus();
}

PermutedCall PermuteDynamicSlice(const PermuteContext& context) {
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order, IdentityOrder(1)}, .result_order = order};
  call.attrs.Set("slice_sizes", ToStored(context.attrs.Ints("slice_sizes"), order));
  PermuteStarts(context, order, &call.attrs);
  return call;
}

absl::StatusOr<ResultTypes> InferDynamicUpdateSlice(InferContext& context) {
  const TensorType &operand = context.operand(0), &update = context.operand(1);
  RETURN_IF_ERROR(CheckSameDType(operand, update, "operand and update"));
  if (operand.rank() != update.rank()) {
    return Refuse(Refusal::kRankMismatch, absl::StrCat("operand and update must have one rank, and are ",
                                                       ToString(operand), " and ", ToString(update)));
  }
  RETURN_IF_ERROR(CheckStarts(context, context.operand(2), operand.rank()));
  for (size_t i = 0; i < update.shape.size(); ++i) {
    RETURN_IF_ERROR(context.RequireAtMost(update.shape[i], operand.shape[i],
                                          absl::StrCat("the update is longer than axis ", i, " of the operand")));
  }
  return ResultTypes{operand};
}

absl::Status ReferenceDynamicUpdateSlice(const ReferenceCall& call) {
  const Literal &in = *call.operands[0], &update = *call.operands[1];
  const std::vector<int64_t> axes = StartAxes(call.attrs, in.type().rank());
  const Shape starts = ClampedStarts(*call.operands[2], axes, in.shape(), update.shape());
  const Shape strides = ColumnMajorStrides(in.shape());
  call.results[0] = in;
  for (IndexWalk i(update.shape()); !i.done(); i.Next()) {
    CopyElement(update, i.linear(), &call.results[0], PositionInWhole(i, starts, strides));
  }
  return absl::OkStatus();
}

PermutedCall PermuteDynamicUpdateSlice(const PermuteContext& context) {
  // The operand is the larger one: the update comes in its order.
  const AxisOrder& order = context.orders[0];
  PermutedCall call{.attrs = context.attrs, .operand_orders = {order, order, IdentityOrder(1)}, .result_order = order};
  PermuteStarts(context, order, &call.attrs);
  return call;
}

}  // namespace tensord
