#include "tensord/gather_scatter.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

using Field = google::protobuf::RepeatedField<int64_t>;

absl::Status Invalid(absl::string_view what) { return absl::InvalidArgumentError(what); }

template <typename Axes>
bool Contains(const Axes& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

absl::Status CheckAxes(absl::string_view name, const Field& axes, int64_t rank) {
  for (int i = 0; i < axes.size(); ++i) {
    const bool is_twice = std::find(axes.begin(), axes.begin() + i, axes[i]) != axes.begin() + i;
    if (axes[i] < 0 || axes[i] >= rank || is_twice) {
      return Invalid(absl::StrCat(name, " must name axes of rank ", rank, ", each once: ", absl::StrJoin(axes, ",")));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAscending(absl::string_view name, const Field& axes, int64_t rank) {
  const absl::Status status = CheckAxes(name, axes, rank);
  if (!status.ok() || std::is_sorted(axes.begin(), axes.end())) return status;
  return Invalid(absl::StrCat(name, " must be ascending: ", absl::StrJoin(axes, ",")));
}

// The attributes of both operations on the operand's axes and on the indices, under common names.
struct IndexAttributes {
  absl::string_view dropped_name, map_name;
  const Field& dropped;   // axes of the operand that a window lacks
  const Field& batching;  // of the operand, paired with
  const Field& indices_batching;
  const Field& map;
  int64_t index_vector_dim;
};

absl::Status CheckBatching(const IndexAttributes& attributes, const Tensor& x, const Tensor& indices) {
  absl::Status status = CheckAscending("batching dims of the operand", attributes.batching, x.rank());
  if (status.ok()) status = CheckAxes("batching dims of the indices", attributes.indices_batching, indices.rank());
  if (!status.ok()) return status;
  if (attributes.batching.size() != attributes.indices_batching.size() ||
      Contains(attributes.indices_batching, attributes.index_vector_dim)) {
    return Invalid("batching dims of the operand and of the indices do not pair");
  }
  for (int i = 0; i < attributes.batching.size(); ++i) {
    const int64_t size = x.shape()[static_cast<size_t>(attributes.batching[i])];
    const int64_t other = indices.shape()[static_cast<size_t>(attributes.indices_batching[i])];
    if (size != other && !IsRunTimeSize(size) && !IsRunTimeSize(other)) {
      return Invalid(absl::StrCat("paired batching dims differ in size: ", ShapeToString(x.shape()), " and ",
                                  ShapeToString(indices.shape())));
    }
    if (Contains(attributes.dropped, attributes.batching[i]) || Contains(attributes.map, attributes.batching[i])) {
      return Invalid(absl::StrCat("an axis is a batching dim and more: axis ", attributes.batching[i]));
    }
  }
  return absl::OkStatus();
}

// Returns the sizes of the indices' axes but that of the index vectors.
absl::StatusOr<Shape> BatchSizes(const IndexAttributes& attributes, const Tensor& x, const Tensor& indices) {
  if (!IsInteger(indices.dtype())) {
    return Invalid(absl::StrCat("indices must be i32 or i64: ", DTypeName(indices.dtype())));
  }
  const int64_t vector_dim = attributes.index_vector_dim;
  if (vector_dim < 0 || vector_dim > indices.rank()) {
    return Invalid(absl::StrCat("index_vector_dim is out of range: ", vector_dim, ", rank ", indices.rank()));
  }
  absl::Status status = CheckAscending(attributes.dropped_name, attributes.dropped, x.rank());
  if (status.ok()) status = CheckAxes(attributes.map_name, attributes.map, x.rank());
  if (status.ok()) status = CheckBatching(attributes, x, indices);
  if (!status.ok()) return status;
  Shape batch = indices.shape();
  int64_t vector_size = 1;
  if (vector_dim < indices.rank()) {
    vector_size = batch[static_cast<size_t>(vector_dim)];
    batch.erase(batch.begin() + vector_dim);
  }
  if (attributes.map.size() != vector_size) {
    return Invalid(absl::StrCat(attributes.map_name, " needs an entry for each index of a vector: ",
                                attributes.map.size(), " entries, ", vector_size, " indices"));
  }
  return batch;
}

absl::StatusOr<Shape> GatherShape(const Tensor& x, const Tensor& indices, const v1::Gather& attributes,
                                  const Shape& slice_sizes) {
  const IndexAttributes common = {.dropped_name = "collapsed_slice_dims",
                                  .map_name = "start_index_map",
                                  .dropped = attributes.collapsed_slice_dims(),
                                  .batching = attributes.operand_batching_dims(),
                                  .indices_batching = attributes.start_indices_batching_dims(),
                                  .map = attributes.start_index_map(),
                                  .index_vector_dim = attributes.index_vector_dim()};
  absl::StatusOr<Shape> batch = BatchSizes(common, x, indices);
  if (!batch.ok()) return batch.status();
  if (static_cast<int64_t>(slice_sizes.size()) != x.rank()) {
    return Invalid(
        absl::StrCat("slice_sizes needs an entry for each axis: ", slice_sizes.size(), " entries, rank ", x.rank()));
  }
  Shape window;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t size = slice_sizes[static_cast<size_t>(axis)];
    if ((size < 0 && !IsRunTimeSize(size)) || !MayFit(size, x.shape()[static_cast<size_t>(axis)])) {
      return Invalid(
          absl::StrCat("a slice does not fit: size ", size, ", axis ", axis, " of ", ShapeToString(x.shape())));
    }
    if (!Contains(common.dropped, axis) && !Contains(common.batching, axis)) {
      window.push_back(size);
    } else if (size != 1) {
      return Invalid(absl::StrCat("a collapsed or batching axis needs slice size 1: axis ", axis, ", size ", size));
    }
  }
  const int64_t rank = static_cast<int64_t>(batch->size() + window.size());
  const absl::Status status = CheckAscending("offset_dims", attributes.offset_dims(), rank);
  if (!status.ok()) return status;
  if (static_cast<size_t>(attributes.offset_dims_size()) != window.size()) {
    return Invalid(absl::StrCat("offset_dims needs an entry for each axis of a window: ", attributes.offset_dims_size(),
                                " entries, ", window.size(), " axes"));
  }
  Shape shape;
  auto next_batch = batch->begin();
  auto next_window = window.begin();
  for (int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(Contains(attributes.offset_dims(), axis) ? *next_window++ : *next_batch++);
  }
  return shape;
}

absl::Status CheckScatter(const Tensor& x, const Tensor& indices, const Tensor& updates,
                          const v1::Scatter& attributes) {
  const IndexAttributes common = {.dropped_name = "inserted_window_dims",
                                  .map_name = "scatter_dims_to_operand_dims",
                                  .dropped = attributes.inserted_window_dims(),
                                  .batching = attributes.input_batching_dims(),
                                  .indices_batching = attributes.scatter_indices_batching_dims(),
                                  .map = attributes.scatter_dims_to_operand_dims(),
                                  .index_vector_dim = attributes.index_vector_dim()};
  absl::StatusOr<Shape> batch = BatchSizes(common, x, indices);
  if (!batch.ok()) return batch.status();
  if (updates.dtype() != x.dtype()) {
    return Invalid(absl::StrCat("dtypes differ, and nothing is converted unasked: ", DTypeName(x.dtype()), " and ",
                                DTypeName(updates.dtype())));
  }
  const absl::Status status = CheckAscending("update_window_dims", attributes.update_window_dims(), updates.rank());
  if (!status.ok()) return status;
  Shape extents;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (!Contains(common.dropped, axis) && !Contains(common.batching, axis)) {
      extents.push_back(x.shape()[static_cast<size_t>(axis)]);
    }
  }
  Shape window, update_batch;
  for (int64_t axis = 0; axis < updates.rank(); ++axis) {
    const bool is_window = Contains(attributes.update_window_dims(), axis);
    (is_window ? window : update_batch).push_back(updates.shape()[static_cast<size_t>(axis)]);
  }
  const auto may_equal = [](int64_t a, int64_t b) { return a == b || IsRunTimeSize(a) || IsRunTimeSize(b); };
  if (!std::equal(window.begin(), window.end(), extents.begin(), extents.end(), MayFit) ||
      !std::equal(update_batch.begin(), update_batch.end(), batch->begin(), batch->end(), may_equal)) {
    return Invalid(absl::StrCat("the updates fit neither windows nor indices: updates ", ShapeToString(updates.shape()),
                                ", windows of ", ShapeToString(extents), ", indices ", ShapeToString(*batch)));
  }
  return absl::OkStatus();
}

// Returns the value of a size over the shapes of operands.
absl::StatusOr<int64_t> Evaluate(const v1::DimExpr& size, const std::vector<Tensor>& operands) {
  if (size.has_operand()) {
    const int64_t operand = size.operand().operand(), axis = size.operand().axis();
    if (operand < 0 || operand >= static_cast<int64_t>(operands.size()) || axis < 0 ||
        axis >= operands[static_cast<size_t>(operand)].rank()) {
      return Invalid(absl::StrCat("a slice size names no axis of an operand: operand ", operand, ", axis ", axis));
    }
    return operands[static_cast<size_t>(operand)].shape()[static_cast<size_t>(axis)];
  }
  if (!size.has_binary()) {
    if (size.expr_case() == v1::DimExpr::kSize && size.size() >= 0) return size.size();
    return Invalid("a slice size must be a number from 0 on, an axis of an operand, or arithmetic over them");
  }
  const v1::BinaryDimExpr& binary = size.binary();
  absl::StatusOr<int64_t> lhs = Evaluate(binary.lhs(), operands);
  absl::StatusOr<int64_t> rhs = lhs.ok() ? Evaluate(binary.rhs(), operands) : lhs;
  if (!rhs.ok()) return rhs;
  if (IsRunTimeSize(*lhs) || IsRunTimeSize(*rhs)) return kRunTimeSize;
  int64_t result = 0;
  bool overflows = false;
  switch (binary.kind()) {
    case v1::BinaryDimExpr::KIND_ADD:
      overflows = __builtin_add_overflow(*lhs, *rhs, &result);
      break;
    case v1::BinaryDimExpr::KIND_SUBTRACT:
      overflows = __builtin_sub_overflow(*lhs, *rhs, &result);
      break;
    case v1::BinaryDimExpr::KIND_MULTIPLY:
      overflows = __builtin_mul_overflow(*lhs, *rhs, &result);
      break;
    case v1::BinaryDimExpr::KIND_FLOOR_DIVIDE:
      overflows = *rhs == 0;
      if (!overflows) result = *lhs / *rhs;
      break;
    case v1::BinaryDimExpr::KIND_MINIMUM:
      result = std::min(*lhs, *rhs);
      break;
    case v1::BinaryDimExpr::KIND_MAXIMUM:
      result = std::max(*lhs, *rhs);
      break;
    default:
      overflows = true;
  }
  if (overflows || result < 0) {
    return Invalid(absl::StrCat("a slice size is none: ", size.ShortDebugString(), " of ", *lhs, " and ", *rhs));
  }
  return result;
}

Tensor Failed(absl::string_view op, const absl::Status& status) {
  return Tensor::Failed(absl::Status(status.code(), absl::StrCat(op, ": ", status.message())));
}

}  // namespace

Tensor Gather(const TensorArg& x, const TensorArg& start_indices, const v1::Gather& attributes) {
  const RecordedCall call("Gather", x.place());
  if (!x.ok()) return x;
  if (!start_indices.ok()) return start_indices;
  const Shape sizes(attributes.slice_sizes().begin(), attributes.slice_sizes().end());
  absl::StatusOr<Shape> shape = GatherShape(x, start_indices, attributes, sizes);
  if (!shape.ok()) return Failed("Gather", shape.status());
  v1::Node op;
  *op.mutable_gather() = attributes;
  return Tensor::FromOp(std::move(op), {x, start_indices}, x.dtype(), *std::move(shape));
}

Tensor GatherDynamicSliceSizes(const TensorArg& x, const TensorArg& start_indices, const v1::Gather& attributes,
                               const std::vector<v1::DimExpr>& slice_sizes, const std::vector<Tensor>& sources) {
  const RecordedCall call("GatherDynamicSliceSizes", x.place());
  constexpr char kName[] = "GatherDynamicSliceSizes";
  std::vector<Tensor> operands = {x, start_indices};
  operands.insert(operands.end(), sources.begin(), sources.end());
  for (const Tensor& operand : operands) {
    if (!operand.ok()) return operand;
  }
  if (attributes.slice_sizes_size() != 0) return Failed(kName, Invalid("the attributes hold slice_sizes too"));
  v1::Node op;
  *op.mutable_gather_dynamic_slice_sizes()->mutable_gather() = attributes;
  Shape sizes;
  for (const v1::DimExpr& expression : slice_sizes) {
    absl::StatusOr<int64_t> size = Evaluate(expression, operands);
    if (!size.ok()) return Failed(kName, size.status());
    sizes.push_back(*size);
    *op.mutable_gather_dynamic_slice_sizes()->add_slice_sizes() = expression;
  }
  absl::StatusOr<Shape> shape = GatherShape(x, start_indices, attributes, sizes);
  if (!shape.ok()) return Failed(kName, shape.status());
  return Tensor::FromOp(std::move(op), operands, x.dtype(), *std::move(shape));
}

Tensor Scatter(const TensorArg& x, const TensorArg& scatter_indices, const TensorArg& updates,
               const v1::Scatter& attributes) {
  const RecordedCall call("Scatter", x.place());
  if (!x.ok()) return x;
  if (!scatter_indices.ok()) return scatter_indices;
  if (!updates.ok()) return updates;
  const absl::Status status = CheckScatter(x, scatter_indices, updates, attributes);
  if (!status.ok()) return Failed("Scatter", status);
  v1::Node op;
  *op.mutable_scatter() = attributes;
  return Tensor::FromOp(std::move(op), {x, scatter_indices, updates}, x.dtype(), x.shape());
}

}  // namespace tensord::client
