#include "engine/ops/gathering.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ops/axis_checks.h"
#include "engine/ops/axis_order.h"
#include "engine/ops/index_walk.h"
#include "engine/ops/index_windows.h"

namespace tensord {
namespace {

// Returns the result's type for windows of these sizes, one for each axis of the operand.
absl::StatusOr<ResultTypes> Windows(InferContext& context, const std::vector<Dim>& sizes) {
  const TensorType &operand = context.operand(0), &indices = context.operand(1);
  const WindowAxes axes = WindowAxes::Of(context.attrs(), kGatherNames);
  RETURN_IF_ERROR(CheckWindowAxes(context, axes, kGatherNames, operand, indices));
  RETURN_IF_ERROR(CheckLength(sizes.size(), operand.rank(), "slice_sizes"));
  const auto is_batching = [&axes](size_t axis) {
    const std::vector<int64_t>& dims = axes.operand_batching_dims;
    return std::find(dims.begin(), dims.end(), static_cast<int64_t>(axis)) != dims.end();
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].size.is_constant() && sizes[i].size.constant() < 0) {
      return Refuse(Refusal::kShapeMismatch,
                    absl::StrCat("slice_sizes has a negative size for axis ", i, ": ", sizes[i].size.constant()));
    }
    if (is_batching(i)) {  // its window is the element of the batch, of which an empty axis has none
      RETURN_IF_ERROR(context.RequireAtMost(
          sizes[i], 1, absl::StrCat("the slice size of the batching axis ", i, " is above 1; it and 1 are")));
      continue;
    }
    RETURN_IF_ERROR(context.RequireAtMost(
        sizes[i], operand.shape[i], absl::StrCat("the slice size of axis ", i, " is larger than the operand's axis")));
  }
  for (int64_t axis : axes.dropped_dims) {
    RETURN_IF_ERROR(
        context.RequireEqual(sizes[static_cast<size_t>(axis)], 1,
                             absl::StrCat("the slice size of the collapsed axis ", axis, " must be 1; it and 1 are")));
  }
  const std::vector<int64_t> batch_axes = axes.IndicesBatchAxes(indices.rank());
  const std::vector<int64_t> batch_dims = axes.BatchDims(indices.rank());
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(operand.rank());
  TensorType result{.dtype = operand.dtype};
  result.shape.resize(batch_axes.size() + window_axes.size());
  for (size_t i = 0; i < batch_axes.size(); ++i) {
    result.shape[static_cast<size_t>(batch_dims[i])] = indices.shape[static_cast<size_t>(batch_axes[i])];
  }
  for (size_t i = 0; i < window_axes.size(); ++i) {
    result.shape[static_cast<size_t>(axes.window_dims[i])] = sizes[static_cast<size_t>(window_axes[i])];
  }
  return ResultTypes{std::move(result)};
}

}  // namespace

absl::StatusOr<ResultTypes> InferGather(InferContext& context) {
  const std::vector<int64_t>& sizes = context.attrs().Ints("slice_sizes");
  return Windows(context, std::vector<Dim>(sizes.begin(), sizes.end()));
}

absl::StatusOr<ResultTypes> InferGatherDynamicSliceSizes(InferContext& context) {
  std::vector<Dim> sizes;
  for (const DimExpr& size : context.attrs().Dims("slice_sizes")) {
    ASSIGN_OR_RETURN(DimExpr resolved, context.Resolve(size));
    sizes.push_back(Dim(std::move(resolved)));
  }
  return Windows(context, sizes);
}

absl::Status ReferenceGather(const ReferenceCall& call) {
  const Literal &operand = *call.operands[0], &indices = *call.operands[1];
  Literal& out = call.results[0];
  const WindowAxes axes = WindowAxes::Of(call.attrs, kGatherNames);
  const int64_t rank = operand.type().rank();
  const std::vector<int64_t> window_axes = axes.OperandWindowAxes(rank);
  const std::vector<int64_t> batch_dims = axes.BatchDims(indices.type().rank());
  const Shape strides = ColumnMajorStrides(operand.shape());
  Shape sizes(operand.shape().size(), 1);
  for (size_t k = 0; k < window_axes.size(); ++k) {
    sizes[static_cast<size_t>(window_axes[k])] = out.shape()[static_cast<size_t>(axes.window_dims[k])];
  }
  const size_t element_bytes = static_cast<size_t>(SizeOf(operand.dtype()));
  Shape batch(batch_dims.size());
  for (IndexWalk i(out.shape()); !i.done(); i.Next()) {
    for (size_t k = 0; k < batch.size(); ++k) batch[k] = i[static_cast<size_t>(batch_dims[k])];
    Shape at = WindowStart(axes, indices, batch, rank);
    for (size_t k = 0; k < at.size(); ++k) at[k] = std::clamp<int64_t>(at[k], 0, operand.shape()[k] - sizes[k]);
    int64_t from = 0;
    for (size_t k = 0; k < window_axes.size(); ++k) {
      at[static_cast<size_t>(window_axes[k])] += i[static_cast<size_t>(axes.window_dims[k])];
    }
    for (size_t k = 0; k < at.size(); ++k) from += at[k] * strides[k];
    std::memcpy(out.mutable_data() + static_cast<size_t>(i.linear()) * element_bytes,
                operand.bytes().data() + static_cast<size_t>(from) * element_bytes, element_bytes);
  }
  return absl::OkStatus();
}

PermutedCall PermuteGather(const PermuteContext& context) {
  const AxisOrder &operand_order = context.orders[0], &indices_order = context.orders[1];
  const WindowAxes axes = WindowAxes::Of(context.attrs, kGatherNames);
  std::vector<int64_t> window_dims =
      MapAxes(axes.window_dims, NaturalOrder(context.result.rank(), context.reversed_is_natural));
  std::sort(window_dims.begin(), window_dims.end());
  PermutedWindows permuted = PermuteWindows(axes, operand_order, indices_order, std::move(window_dims));
  PermutedCall call{.attrs = context.attrs, .result_order = std::move(permuted.windows_order)};
  call.operand_orders.assign(context.orders.begin(), context.orders.end());
  permuted.axes.SetOn(&call.attrs, kGatherNames);
  for (size_t i = 0; i < call.attrs.schema().size(); ++i) {
    if (call.attrs.schema()[i].name != "slice_sizes") continue;
    if (call.attrs.schema()[i].kind == AttrKind::kInts) {
      call.attrs.Set(i, ToStored(context.attrs.Ints("slice_sizes"), operand_order));
    } else {
      call.attrs.Set(i, ToStored(context.attrs.Dims("slice_sizes"), operand_order));
    }
  }
  return call;
}

}  // namespace tensord
