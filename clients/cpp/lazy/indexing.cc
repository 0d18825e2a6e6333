#include "tensord/indexing.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/gather_scatter.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

absl::Status CheckIndices(absl::string_view op, const Tensor& indices) {
  if (IsInteger(indices.dtype())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(op, ": indices must be i32 or i64: ", DTypeName(indices.dtype())));
}

absl::Status CheckStart(absl::string_view op, const Tensor& x, const Tensor& start) {
  const absl::Status status = CheckIndices(op, start);
  if (!status.ok()) return status;
  if (start.shape() == Shape{x.rank()}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      op, ": needs a vector of one start index for each axis: ", ShapeToString(start.shape()), ", rank ", x.rank()));
}

}  // namespace

Tensor Take(const TensorArg& x, const TensorArg& indices, int64_t axis) {
  const RecordedCall call("Take", x.place());
  if (!x.ok()) return x;
  if (!indices.ok()) return indices;
  const absl::Status status = CheckIndices("Take", indices);
  if (!status.ok()) return Tensor::Failed(status);
  absl::StatusOr<int64_t> dimension = NormalizeAxis("Take", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  v1::Gather gather;
  gather.add_collapsed_slice_dims(*dimension);
  gather.add_start_index_map(*dimension);
  gather.set_index_vector_dim(indices.rank());
  std::vector<v1::DimExpr> sizes(static_cast<size_t>(x.rank()));
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t size = i == *dimension ? 1 : x.shape()[static_cast<size_t>(i)];
    v1::DimExpr& slice = sizes[static_cast<size_t>(i)];
    IsRunTimeSize(size) ? slice.mutable_operand()->set_axis(i) : slice.set_size(size);
    if (i != *dimension) gather.add_offset_dims(i < *dimension ? i : i + indices.rank() - 1);
  }
  const bool is_static =
      std::all_of(sizes.begin(), sizes.end(), [](const v1::DimExpr& size) { return !size.has_operand(); });
  if (!is_static) return GatherDynamicSliceSizes(x, indices, gather, sizes);
  for (const v1::DimExpr& size : sizes) gather.add_slice_sizes(size.size());
  return Gather(x, indices, gather);
}

Tensor TakeAlongAxis(const TensorArg& x, const TensorArg& indices, int64_t axis) {
  const RecordedCall call("TakeAlongAxis", x.place());
  if (!x.ok()) return x;
  if (!indices.ok()) return indices;
  const absl::Status status = CheckIndices("TakeAlongAxis", indices);
  if (!status.ok()) return Tensor::Failed(status);
  absl::StatusOr<int64_t> dimension = NormalizeAxis("TakeAlongAxis", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  if (indices.rank() != x.rank()) {
    return RefusedOperation("TakeAlongAxis", absl::StrCat("the ranks differ: ", ShapeToString(x.shape()), " and ",
                                                          ShapeToString(indices.shape())));
  }
  v1::Gather gather;
  gather.add_collapsed_slice_dims(*dimension);
  gather.add_start_index_map(*dimension);
  gather.set_index_vector_dim(x.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    gather.add_slice_sizes(1);
    if (i == *dimension) continue;
    gather.add_operand_batching_dims(i);
    gather.add_start_indices_batching_dims(i);
  }
  return Gather(x, indices, gather);
}

Tensor Put(const TensorArg& x, const TensorArg& indices, const TensorArg& updates, v1::Scatter::Combiner combiner,
           int64_t axis) {
  const RecordedCall call("Put", x.place());
  if (!x.ok()) return x;
  if (!indices.ok()) return indices;
  const absl::Status status = CheckIndices("Put", indices);
  if (!status.ok()) return Tensor::Failed(status);
  absl::StatusOr<int64_t> dimension = NormalizeAxis("Put", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  v1::Scatter scatter;
  scatter.add_inserted_window_dims(*dimension);
  scatter.add_scatter_dims_to_operand_dims(*dimension);
  scatter.set_index_vector_dim(indices.rank());
  scatter.set_combiner(combiner);
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != *dimension) scatter.add_update_window_dims(i < *dimension ? i : i + indices.rank() - 1);
  }
  return Scatter(x, indices, updates, scatter);
}

Tensor DynamicSlice(const TensorArg& x, const TensorArg& start, const std::vector<int64_t>& sizes) {
  const RecordedCall call("DynamicSlice", x.place());
  if (!x.ok()) return x;
  if (!start.ok()) return start;
  const absl::Status status = CheckStart("DynamicSlice", x, start);
  if (!status.ok()) return Tensor::Failed(status);
  const bool fits = std::equal(sizes.begin(), sizes.end(), x.shape().begin(), x.shape().end(),
                               [](int64_t size, int64_t dim) { return size >= 0 && MayFit(size, dim); });
  if (!fits) {
    return RefusedOperation("DynamicSlice",
                            absl::StrCat("no such window: ", ShapeToString(sizes), " of ", ShapeToString(x.shape())));
  }
  v1::Node op;
  op.mutable_dynamic_slice()->mutable_slice_sizes()->Assign(sizes.begin(), sizes.end());
  return Tensor::FromOp(std::move(op), {x, start}, x.dtype(), sizes);
}

Tensor DynamicUpdateSlice(const TensorArg& x, const TensorArg& update, const TensorArg& start) {
  const RecordedCall call("DynamicUpdateSlice", x.place());
  if (!x.ok()) return x;
  if (!update.ok()) return update;
  if (!start.ok()) return start;
  const absl::Status status = CheckStart("DynamicUpdateSlice", x, start);
  if (!status.ok()) return Tensor::Failed(status);
  const bool fits =
      std::equal(update.shape().begin(), update.shape().end(), x.shape().begin(), x.shape().end(), MayFit);
  if (!fits || update.dtype() != x.dtype()) {
    return RefusedOperation("DynamicUpdateSlice", absl::StrCat("the update does not fit: ", DTypeName(update.dtype()),
                                                               ShapeToString(update.shape()), " into ",
                                                               DTypeName(x.dtype()), ShapeToString(x.shape())));
  }
  v1::Node op;
  op.mutable_dynamic_update_slice();
  return Tensor::FromOp(std::move(op), {x, update, start}, x.dtype(), x.shape());
}

}  // namespace tensord::client
