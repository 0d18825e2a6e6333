#include "clients/cpp/indexing.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

Tensor Refused(absl::string_view op, absl::string_view what) {
  return Tensor::Failed(absl::InvalidArgumentError(absl::StrCat(op, ": ", what)));
}

absl::Status CheckIndices(absl::string_view op, const Tensor& indices) {
  if (!indices.ok()) return indices.status();
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

template <typename Axes>
bool Contains(const Axes& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

}  // namespace

Tensor Take(const Tensor& x, const Tensor& indices, int64_t axis) {
  if (!x.ok()) return x;
  const absl::Status status = CheckIndices("Take", indices);
  if (!status.ok()) return Tensor::Failed(status);
  absl::StatusOr<int64_t> dimension = NormalizeAxis("Take", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  v1::Gather gather;
  gather.add_collapsed_slice_dims(*dimension);
  gather.add_start_index_map(*dimension);
  gather.set_index_vector_dim(indices.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    gather.add_slice_sizes(i == *dimension ? 1 : x.shape()[static_cast<size_t>(i)]);
    if (i != *dimension) gather.add_offset_dims(i < *dimension ? i : i + indices.rank() - 1);
  }
  return Gather(x, indices, gather);
}

Tensor DynamicSlice(const Tensor& x, const Tensor& start, const std::vector<int64_t>& sizes) {
  if (!x.ok()) return x;
  const absl::Status status = CheckStart("DynamicSlice", x, start);
  if (!status.ok()) return Tensor::Failed(status);
  const bool fits = std::equal(sizes.begin(), sizes.end(), x.shape().begin(), x.shape().end(),
                               [](int64_t size, int64_t dim) { return size >= 0 && size <= dim; });
  if (!fits) {
    return Refused("DynamicSlice",
                   absl::StrCat("no such window: ", ShapeToString(sizes), " of ", ShapeToString(x.shape())));
  }
  v1::Node op;
  op.mutable_dynamic_slice()->mutable_slice_sizes()->Assign(sizes.begin(), sizes.end());
  return Tensor::FromOp(std::move(op), {x, start}, x.dtype(), sizes);
}

Tensor DynamicUpdateSlice(const Tensor& x, const Tensor& update, const Tensor& start) {
  if (!x.ok()) return x;
  if (!update.ok()) return update;
  const absl::Status status = CheckStart("DynamicUpdateSlice", x, start);
  if (!status.ok()) return Tensor::Failed(status);
  const bool fits = std::equal(update.shape().begin(), update.shape().end(), x.shape().begin(), x.shape().end(),
                               [](int64_t size, int64_t dim) { return size <= dim; });
  if (!fits || update.dtype() != x.dtype()) {
    return Refused("DynamicUpdateSlice",
                   absl::StrCat("the update does not fit: ", DTypeName(update.dtype()), ShapeToString(update.shape()),
                                " into ", DTypeName(x.dtype()), ShapeToString(x.shape())));
  }
  v1::Node op;
  op.mutable_dynamic_update_slice();
  return Tensor::FromOp(std::move(op), {x, update, start}, x.dtype(), x.shape());
}

Tensor Gather(const Tensor& x, const Tensor& start_indices, const v1::Gather& attributes) {
  if (!x.ok()) return x;
  const absl::Status status = CheckIndices("Gather", start_indices);
  if (!status.ok()) return Tensor::Failed(status);
  const int64_t index_vector_dim = attributes.index_vector_dim();
  if (index_vector_dim < 0 || index_vector_dim > start_indices.rank()) {
    return Refused("Gather", absl::StrCat("index_vector_dim is out of range: ", index_vector_dim));
  }
  if (attributes.slice_sizes_size() != x.rank()) {
    return Refused("Gather", absl::StrCat("slice_sizes needs an entry for each axis: ", attributes.slice_sizes_size(),
                                          " entries, rank ", x.rank()));
  }
  Shape batch_sizes;
  for (int64_t axis = 0; axis < start_indices.rank(); ++axis) {
    if (axis != index_vector_dim) batch_sizes.push_back(start_indices.shape()[static_cast<size_t>(axis)]);
  }
  Shape window_sizes;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = attributes.slice_sizes(static_cast<int>(axis));
    if (size < 0 || size > x.shape()[static_cast<size_t>(axis)]) {
      return Refused("Gather", absl::StrCat("a slice does not fit: size ", size, ", axis ", axis));
    }
    const bool is_dropped =
        Contains(attributes.collapsed_slice_dims(), axis) || Contains(attributes.operand_batching_dims(), axis);
    if (!is_dropped) window_sizes.push_back(size);
  }
  if (static_cast<size_t>(attributes.offset_dims_size()) != window_sizes.size()) {
    return Refused("Gather", absl::StrCat("offset_dims needs an entry for each axis of a window: ",
                                          attributes.offset_dims_size(), " entries, ", window_sizes.size(), " axes"));
  }
  const int64_t rank = static_cast<int64_t>(batch_sizes.size() + window_sizes.size());
  const std::vector<int64_t> offset_dims(attributes.offset_dims().begin(), attributes.offset_dims().end());
  absl::StatusOr<std::vector<int64_t>> offsets = NormalizeAxes("Gather", offset_dims, rank);
  if (!offsets.ok()) return Tensor::Failed(offsets.status());

  Shape shape;
  auto next_batch = batch_sizes.begin();
  auto next_window = window_sizes.begin();
  for (int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(Contains(*offsets, axis) ? *next_window++ : *next_batch++);
  }
  v1::Node op;
  *op.mutable_gather() = attributes;
  return Tensor::FromOp(std::move(op), {x, start_indices}, x.dtype(), std::move(shape));
}

Tensor Scatter(const Tensor& x, const Tensor& scatter_indices, const Tensor& updates, const v1::Scatter& attributes) {
  if (!x.ok()) return x;
  if (!updates.ok()) return updates;
  const absl::Status status = CheckIndices("Scatter", scatter_indices);
  if (!status.ok()) return Tensor::Failed(status);
  if (updates.dtype() != x.dtype()) {
    return Refused("Scatter", absl::StrCat("dtypes differ, and nothing is converted unasked: ", DTypeName(x.dtype()),
                                           " and ", DTypeName(updates.dtype())));
  }
  v1::Node op;
  *op.mutable_scatter() = attributes;
  return Tensor::FromOp(std::move(op), {x, scatter_indices, updates}, x.dtype(), x.shape());
}

}  // namespace tensord::client
