#include "tensord/structural.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

// Writes a size, a symbol by its name.
void SetSize(int64_t dim, v1::DimExpr* target) {
  IsSymbol(dim) ? target->set_symbol(SymbolName(dim)) : target->set_size(dim);
}

void SetShape(const Shape& shape, google::protobuf::RepeatedPtrField<v1::DimExpr>* target) {
  for (int64_t dim : shape) SetSize(dim, target->Add());
}

// Checks sizes that an operation is given: no kRunTimeSize, nothing negative, and no overflow of those that are
// numbers.
absl::Status CheckShape(const Shape& shape) {
  Shape numbers;
  for (int64_t dim : shape) {
    if (!IsSymbol(dim)) numbers.push_back(dim);
  }
  return ElementCount(numbers).status();
}

// Sizes that are kRunTimeSize are those of x, in their order.
Tensor ReshapeTo(const Tensor& x, Shape shape, MemoryOrder order) {
  v1::Node op;
  int64_t axis = 0;
  for (int64_t dim : shape) {
    v1::DimExpr* size = op.mutable_reshape()->add_shape();
    if (dim != kRunTimeSize) {
      SetSize(dim, size);
      continue;
    }
    while (x.shape()[static_cast<size_t>(axis)] != kRunTimeSize) ++axis;
    size->mutable_operand()->set_axis(axis++);
  }
  op.mutable_reshape()->set_order(ToWire(order));
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(shape));
}

v1::DimExpr Combined(v1::BinaryDimExpr::Kind kind, v1::DimExpr lhs, v1::DimExpr rhs) {
  v1::DimExpr result;
  result.mutable_binary()->set_kind(kind);
  *result.mutable_binary()->mutable_lhs() = std::move(lhs);
  *result.mutable_binary()->mutable_rhs() = std::move(rhs);
  return result;
}

// Returns the number of x's elements over the product of `divisors`, as a size of x's node.
v1::DimExpr Quotient(const Tensor& x, const Shape& divisors) {
  v1::DimExpr count, divisor;
  count.set_size(1);
  divisor.set_size(1);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    v1::DimExpr size;
    size.mutable_operand()->set_axis(axis);
    count = axis == 0 ? size : Combined(v1::BinaryDimExpr::KIND_MULTIPLY, std::move(count), std::move(size));
  }
  for (int64_t dim : divisors) {
    v1::DimExpr size;
    SetSize(dim, &size);
    divisor = Combined(v1::BinaryDimExpr::KIND_MULTIPLY, std::move(divisor), std::move(size));
  }
  return divisors.empty() ? count
                          : Combined(v1::BinaryDimExpr::KIND_FLOOR_DIVIDE, std::move(count), std::move(divisor));
}

// Returns the size that x's sizes leave over beside the known ones: a number or a symbol, or kRunTimeSize for another
// expression. INVALID_ARGUMENT if no number fits.
absl::StatusOr<int64_t> LeftOver(const Tensor& x, const Shape& known) {
  Shape open, divisors;
  int64_t from = 1, to = 1;
  for (int64_t dim : known) {
    if (IsRunTimeSize(dim)) {
      divisors.push_back(dim);
    } else if (__builtin_mul_overflow(to, dim, &to)) {
      return absl::InvalidArgumentError(absl::StrCat("too many elements: shape ", ShapeToString(known)));
    }
  }
  for (int64_t dim : x.shape()) {
    const auto same = IsSymbol(dim) ? std::find(divisors.begin(), divisors.end(), dim) : divisors.end();
    if (same != divisors.end()) {
      divisors.erase(same);
    } else if (IsRunTimeSize(dim)) {
      open.push_back(dim);
    } else if (__builtin_mul_overflow(from, dim, &from)) {
      return kRunTimeSize;
    }
  }
  if (!divisors.empty() || open.size() > 1) return kRunTimeSize;
  if (open.size() == 1) return from == to && from > 0 ? open.front() : kRunTimeSize;
  if (to > 0 && from % to == 0) return from / to;
  return absl::InvalidArgumentError(
      absl::StrCat("no size fits -1: ", ShapeToString(x.shape()), " beside ", ShapeToString(known)));
}

// Reshapes to numbers, symbols and at most one -1, which is what the sizes of x leave over. The server checks the count
// of elements.
Tensor ReshapeAtRunTime(const Tensor& x, const Shape& shape, MemoryOrder order) {
  Shape known;
  for (int64_t dim : shape) {
    if (dim != -1) known.push_back(dim);
  }
  const absl::Status checked = CheckShape(known);
  if (!checked.ok()) return RefusedOperation("Reshape", checked.message());
  if (known.size() + 1 < shape.size()) {
    return RefusedOperation("Reshape", absl::StrCat("two sizes are -1: ", ShapeToString(shape)));
  }
  Shape result = shape;
  const auto open = std::find(result.begin(), result.end(), -1);
  if (open == result.end()) return ReshapeTo(x, std::move(result), order);
  const absl::StatusOr<int64_t> left_over = LeftOver(x, known);
  if (!left_over.ok()) return RefusedOperation("Reshape", left_over.status().message());
  *open = *left_over;
  if (*left_over != kRunTimeSize) return ReshapeTo(x, std::move(result), order);
  v1::Node op;
  for (int64_t dim : result) {
    v1::DimExpr* size = op.mutable_reshape()->add_shape();
    if (dim == kRunTimeSize) {
      *size = Quotient(x, known);
    } else {
      SetSize(dim, size);
    }
  }
  op.mutable_reshape()->set_order(ToWire(order));
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(result));
}

// Computes low + high + size + (size - 1) * interior; false if that overflows.
bool PaddedSize(int64_t size, int64_t low, int64_t high, int64_t interior, int64_t* result) {
  if (IsRunTimeSize(size)) {
    *result = low == 0 && high == 0 && interior == 0 ? size : kRunTimeSize;
    return true;
  }
  int64_t holes;
  return !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior, &holes) &&
         !__builtin_add_overflow(size, holes, result) && !__builtin_add_overflow(*result, low, result) &&
         !__builtin_add_overflow(*result, high, result);
}

Tensor Triangle(const TensorArg& x, int64_t diagonal, bool is_lower) {
  const RecordedCall call(is_lower ? "Tril" : "Triu", x.place());
  if (!x.ok()) return x;
  if (x.rank() < 2)
    return RefusedOperation(is_lower ? "Tril" : "Triu", absl::StrCat("needs a matrix: rank ", x.rank()));
  v1::Node op;
  (is_lower ? op.mutable_tril() : op.mutable_triu())->set_diagonal(diagonal);
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), x.shape());
}

}  // namespace

Tensor Iota(DType dtype, Shape shape, int64_t axis, const SourceLocation& place) {
  const RecordedCall call("Iota", place);
  const absl::Status checked = CheckShape(shape);
  if (!checked.ok()) return RefusedOperation("Iota", checked.message());
  absl::StatusOr<int64_t> dimension = NormalizeAxis("Iota", axis, static_cast<int64_t>(shape.size()));
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  v1::Node op;
  op.mutable_iota()->set_dimension(*dimension);
  op.mutable_iota()->mutable_type()->set_dtype(ToWire(dtype));
  SetShape(shape, op.mutable_iota()->mutable_type()->mutable_shape());
  return Tensor::FromOp(std::move(op), {}, dtype, std::move(shape));
}

Tensor Full(Shape shape, const Operand& value, DType dtype) {
  const RecordedCall call("Full", value.place());
  const Tensor scalar = value.AsTensor("Full", dtype);
  if (!scalar.ok()) return scalar;
  if (scalar.dtype() != dtype) {
    return RefusedOperation("Full", absl::StrCat("the value has another dtype: ", DTypeName(scalar.dtype()),
                                                 ", wanted ", DTypeName(dtype)));
  }
  return BroadcastTo(scalar, shape);
}

Tensor Transpose(const TensorArg& x) {
  const RecordedCall call("Transpose", x.place());
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  return Transpose(x, permutation);
}

Tensor Transpose(const TensorArg& x, const std::vector<int64_t>& permutation) {
  const RecordedCall call("Transpose", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<std::vector<int64_t>> axes = NormalizeAxes("Transpose", permutation, x.rank());
  if (!axes.ok()) return Tensor::Failed(axes.status());
  if (static_cast<int64_t>(axes->size()) != x.rank()) {
    return RefusedOperation("Transpose", absl::StrCat("the permutation does not name each axis: ", axes->size(),
                                                      " entries, rank ", x.rank()));
  }
  v1::Node op;
  op.mutable_transpose();
  Shape shape;
  for (int64_t axis : *axes) {
    op.mutable_transpose()->add_permutation(axis);
    shape.push_back(x.shape()[static_cast<size_t>(axis)]);
  }
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(shape));
}

Tensor Reshape(const TensorArg& x, const Shape& shape, MemoryOrder order) {
  const RecordedCall call("Reshape", x.place());
  if (!x.ok()) return x;
  if (HasRunTimeSize(x.shape()) || HasRunTimeSize(shape)) return ReshapeAtRunTime(x, shape, order);
  Shape known = shape;
  const auto open = std::find(known.begin(), known.end(), -1);
  if (open != known.end()) *open = 1;
  absl::StatusOr<int64_t> from = ElementCount(x.shape());
  absl::StatusOr<int64_t> to = ElementCount(known);
  if (!from.ok()) return RefusedOperation("Reshape", from.status().message());
  if (!to.ok()) return RefusedOperation("Reshape", to.status().message());
  if (open != known.end() && *to > 0) {
    *open = *from / *to;
    *to *= *open;
  }
  if (*from != *to) {
    return RefusedOperation("Reshape", absl::StrCat("shapes have different element counts: ", ShapeToString(x.shape()),
                                                    " to ", ShapeToString(shape)));
  }
  if (open != known.end() && *from == 0 && std::count(known.begin(), known.end(), 0) > 0 && *open != 0) {
    return RefusedOperation("Reshape", absl::StrCat("-1 is ambiguous for an empty tensor: ", ShapeToString(shape)));
  }
  return ReshapeTo(x, std::move(known), order);
}

Tensor ExpandDims(const TensorArg& x, const Axes& axes) {
  const RecordedCall call("ExpandDims", x.place());
  if (!x.ok()) return x;
  const int64_t rank = x.rank() + static_cast<int64_t>(axes.values().size());
  absl::StatusOr<std::vector<int64_t>> positions = NormalizeAxes("ExpandDims", axes.values(), rank);
  if (!positions.ok()) return Tensor::Failed(positions.status());
  Shape shape(static_cast<size_t>(rank), 0);
  for (int64_t position : *positions) shape[static_cast<size_t>(position)] = -1;
  auto next = x.shape().begin();
  for (int64_t& dim : shape) dim = dim == -1 ? 1 : *next++;
  return ReshapeTo(x, std::move(shape), MemoryOrder::kRowMajor);
}

Tensor Squeeze(const TensorArg& x, const Axes& axes) {
  const RecordedCall call("Squeeze", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<std::vector<int64_t>> removed = NormalizeAxes("Squeeze", axes.values(), x.rank());
  if (!removed.ok()) return Tensor::Failed(removed.status());
  Shape shape;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t dim = x.shape()[static_cast<size_t>(axis)];
    if (std::find(removed->begin(), removed->end(), axis) == removed->end()) {
      shape.push_back(dim);
    } else if (dim != 1) {
      return RefusedOperation("Squeeze",
                              absl::StrCat("axis does not have size 1: axis ", axis, " of ", ShapeToString(x.shape())));
    }
  }
  return ReshapeTo(x, std::move(shape), MemoryOrder::kRowMajor);
}

Tensor BroadcastTo(const TensorArg& x, const Shape& shape) {
  const RecordedCall call("BroadcastTo", x.place());
  if (!x.ok()) return x;
  if (x.shape() == shape) return x;
  const int64_t added = static_cast<int64_t>(shape.size()) - x.rank();
  if (added < 0) {
    return RefusedOperation("BroadcastTo",
                            absl::StrCat("the rank falls: ", ShapeToString(x.shape()), " to ", ShapeToString(shape)));
  }
  std::vector<int64_t> dimensions(static_cast<size_t>(x.rank()));
  std::iota(dimensions.begin(), dimensions.end(), added);
  return BroadcastInDim(x, shape, dimensions);
}

Tensor BroadcastLike(const TensorArg& x, const Shape& shape, const std::vector<Tensor>& sources) {
  const RecordedCall call("BroadcastLike", x.place());
  if (!x.ok()) return x;
  if (std::equal(x.shape().begin(), x.shape().end(), shape.begin(), shape.end(), MayBeEqual)) return x;
  if (std::find(shape.begin(), shape.end(), kRunTimeSize) == shape.end()) return BroadcastTo(x, shape);
  std::vector<Tensor> operands = {x};
  v1::Node op;
  const int64_t rank = static_cast<int64_t>(shape.size());
  for (int64_t from_last = rank; from_last >= 1; --from_last) {
    v1::DimExpr* size = op.mutable_broadcast_in_dim()->add_shape();
    const int64_t dim = shape[static_cast<size_t>(rank - from_last)];
    if (dim != kRunTimeSize) {
      SetSize(dim, size);
      continue;
    }
    const auto has_size = [from_last](const Tensor& tensor) {
      return tensor.rank() >= from_last && *(tensor.shape().end() - from_last) == kRunTimeSize;
    };
    size_t at = 0;
    while (at < operands.size() && !has_size(operands[at])) ++at;
    if (at == operands.size()) {
      const auto source = std::find_if(sources.begin(), sources.end(), has_size);
      if (source == sources.end()) return RefusedOperation("BroadcastLike", "no source has the run-time size");
      operands.push_back(*source);
    }
    size->mutable_operand()->set_operand(static_cast<int64_t>(at));
    size->mutable_operand()->set_axis(operands[at].rank() - from_last);
  }
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    op.mutable_broadcast_in_dim()->add_broadcast_dimensions(rank - x.rank() + axis);
  }
  return Tensor::FromOp(std::move(op), operands, x.dtype(), shape);
}

Tensor BroadcastInDim(const TensorArg& x, const Shape& shape, const std::vector<int64_t>& dimensions) {
  const RecordedCall call("BroadcastInDim", x.place());
  if (!x.ok()) return x;
  const absl::Status checked = CheckShape(shape);
  if (!checked.ok()) return RefusedOperation("BroadcastInDim", checked.message());
  absl::StatusOr<std::vector<int64_t>> axes =
      NormalizeAxes("BroadcastInDim", dimensions, static_cast<int64_t>(shape.size()));
  if (!axes.ok()) return Tensor::Failed(axes.status());
  if (static_cast<int64_t>(axes->size()) != x.rank()) {
    return RefusedOperation(
        "BroadcastInDim",
        absl::StrCat("dimensions do not name each axis of the operand: ", axes->size(), " entries, rank ", x.rank()));
  }
  v1::Node op;
  SetShape(shape, op.mutable_broadcast_in_dim()->mutable_shape());
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t dim = x.shape()[i];
    if (dim != 1 && !MayBeEqual(dim, shape[static_cast<size_t>((*axes)[i])])) {
      return RefusedOperation("BroadcastInDim", absl::StrCat("sizes differ and the operand's is not 1: ",
                                                             ShapeToString(x.shape()), " to ", ShapeToString(shape)));
    }
    op.mutable_broadcast_in_dim()->add_broadcast_dimensions((*axes)[i]);
  }
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), shape);
}

Tensor Concatenate(const std::vector<Tensor>& tensors, int64_t axis, const SourceLocation& place) {
  const RecordedCall call("Concatenate", place);
  if (tensors.empty()) return RefusedOperation("Concatenate", "needs at least one tensor");
  const Tensor& first = tensors.front();
  if (!first.ok()) return first;
  absl::StatusOr<int64_t> dimension = NormalizeAxis("Concatenate", axis, first.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  const size_t along = static_cast<size_t>(*dimension);
  Shape shape = first.shape();
  shape[along] = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.ok()) return tensor;
    Shape expected = tensor.shape();
    if (tensor.rank() == first.rank()) expected[along] = first.shape()[along];
    const bool fits =
        std::equal(expected.begin(), expected.end(), first.shape().begin(), first.shape().end(), MayBeEqual);
    if (!fits || tensor.dtype() != first.dtype()) {
      return RefusedOperation("Concatenate", absl::StrCat("tensors differ beyond the axis: ", DTypeName(first.dtype()),
                                                          ShapeToString(first.shape()), " and ",
                                                          DTypeName(tensor.dtype()), ShapeToString(tensor.shape())));
    }
    if (IsRunTimeSize(shape[along]) || IsRunTimeSize(tensor.shape()[along])) {
      shape[along] = kRunTimeSize;
    } else if (__builtin_add_overflow(shape[along], tensor.shape()[along], &shape[along])) {
      return RefusedOperation("Concatenate", "the result is too large");
    }
  }
  v1::Node op;
  op.mutable_concatenate()->set_dimension(*dimension);
  return Tensor::FromOp(std::move(op), tensors, first.dtype(), std::move(shape));
}

Tensor Reverse(const TensorArg& x, const Axes& axes) {
  const RecordedCall call("Reverse", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<std::vector<int64_t>> dimensions = NormalizeAxes("Reverse", axes.values(), x.rank());
  if (!dimensions.ok()) return Tensor::Failed(dimensions.status());
  v1::Node op;
  op.mutable_reverse();
  for (int64_t dimension : *dimensions) op.mutable_reverse()->add_dimensions(dimension);
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), x.shape());
}

Tensor Slice(const TensorArg& x, const std::vector<int64_t>& start, const std::vector<int64_t>& limit,
             const std::vector<int64_t>& strides) {
  const RecordedCall call("Slice", x.place());
  if (!x.ok()) return x;
  const size_t rank = x.shape().size();
  if (start.size() != rank || limit.size() != rank || (!strides.empty() && strides.size() != rank)) {
    return RefusedOperation("Slice", absl::StrCat("start, limit and strides need an entry for each axis: rank ", rank));
  }
  v1::Node op;
  op.mutable_slice();
  Shape shape(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t stride = strides.empty() ? 1 : strides[axis];
    if (IsRunTimeSize(x.shape()[axis])) {
      return RefusedOperation(
          "Slice", absl::StrCat("an axis has a size known only when the graph runs, use DynamicSlice: axis ", axis,
                                " of ", ShapeToString(x.shape())));
    }
    if (start[axis] < 0 || start[axis] > limit[axis] || limit[axis] > x.shape()[axis] || stride < 1) {
      return RefusedOperation("Slice", absl::StrCat("out of range: ", start[axis], ":", limit[axis], ":", stride,
                                                    " of size ", x.shape()[axis], ", axis ", axis));
    }
    const int64_t span = limit[axis] - start[axis];
    shape[axis] = span / stride + (span % stride != 0 ? 1 : 0);
    op.mutable_slice()->add_start_indices(start[axis]);
    op.mutable_slice()->add_limit_indices(limit[axis]);
    if (!strides.empty()) op.mutable_slice()->add_strides(stride);
  }
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(shape));
}

Tensor Pad(const TensorArg& x, const Operand& value, const std::vector<int64_t>& low, const std::vector<int64_t>& high,
           const std::vector<int64_t>& interior) {
  const RecordedCall call("Pad", x.place());
  if (!x.ok()) return x;
  const Tensor padding = value.AsTensor("Pad", x.dtype());
  if (!padding.ok()) return padding;
  if (padding.rank() != 0 || padding.dtype() != x.dtype()) {
    return RefusedOperation("Pad", absl::StrCat("the padding value must be a scalar of the operand's dtype: ",
                                                DTypeName(padding.dtype()), ShapeToString(padding.shape())));
  }
  const size_t rank = x.shape().size();
  if (low.size() != rank || high.size() != rank || (!interior.empty() && interior.size() != rank)) {
    return RefusedOperation("Pad", absl::StrCat("low, high and interior need an entry for each axis: rank ", rank));
  }
  v1::Node op;
  op.mutable_pad();
  Shape shape(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t between = interior.empty() ? 0 : interior[axis];
    if (between < 0 || !PaddedSize(x.shape()[axis], low[axis], high[axis], between, &shape[axis]) ||
        (shape[axis] < 0 && shape[axis] != kRunTimeSize)) {
      return RefusedOperation("Pad", absl::StrCat("no such size: ", x.shape()[axis], " with low ", low[axis], ", high ",
                                                  high[axis], ", interior ", between, ", axis ", axis));
    }
    op.mutable_pad()->add_edge_padding_low(low[axis]);
    op.mutable_pad()->add_edge_padding_high(high[axis]);
    if (!interior.empty()) op.mutable_pad()->add_interior_padding(between);
  }
  return Tensor::FromOp(std::move(op), {x, padding}, x.dtype(), std::move(shape));
}

Tensor ExtractDiag(const TensorArg& x, int64_t axis_a, int64_t axis_b) {
  const RecordedCall call("ExtractDiag", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<std::vector<int64_t>> axes = NormalizeAxes("ExtractDiag", {axis_a, axis_b}, x.rank());
  if (!axes.ok()) return Tensor::Failed(axes.status());
  const size_t a = static_cast<size_t>((*axes)[0]);
  const size_t b = static_cast<size_t>((*axes)[1]);
  if (!MayBeEqual(x.shape()[a], x.shape()[b])) {
    return RefusedOperation(
        "ExtractDiag", absl::StrCat("the axes differ in size: ", ShapeToString(x.shape()), ", axes ", a, " and ", b));
  }
  v1::Node op;
  op.mutable_extract_diag()->set_axis_a((*axes)[0]);
  op.mutable_extract_diag()->set_axis_b((*axes)[1]);
  Shape shape = x.shape();
  shape.erase(shape.begin() + (*axes)[1]);
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(shape));
}

Tensor EmbedDiag(const TensorArg& x, int64_t axis_a, int64_t axis_b) {
  const RecordedCall call("EmbedDiag", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<int64_t> a = NormalizeAxis("EmbedDiag", axis_a, x.rank());
  if (!a.ok()) return Tensor::Failed(a.status());
  absl::StatusOr<int64_t> b = NormalizeAxis("EmbedDiag", axis_b, x.rank() + 1);
  if (!b.ok()) return Tensor::Failed(b.status());
  v1::Node op;
  op.mutable_embed_diag()->set_axis_a(*a);
  op.mutable_embed_diag()->set_axis_b(*b);
  Shape shape = x.shape();
  shape.insert(shape.begin() + *b, x.shape()[static_cast<size_t>(*a)]);
  return Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(shape));
}

Tensor Tril(const TensorArg& x, int64_t diagonal) { return Triangle(x, diagonal, /*is_lower=*/true); }

Tensor Triu(const TensorArg& x, int64_t diagonal) { return Triangle(x, diagonal, /*is_lower=*/false); }

}  // namespace tensord::client
