#include "tensord/contraction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/structural.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

// Both groups of axes of one operand, in [0, rank).
struct OperandAxes {
  std::vector<int64_t> contracting;
  std::vector<int64_t> batching;
};

absl::StatusOr<OperandAxes> Normalize(const std::vector<int64_t>& contracting, const std::vector<int64_t>& batching,
                                      int64_t rank) {
  std::vector<int64_t> all = contracting;
  all.insert(all.end(), batching.begin(), batching.end());
  absl::StatusOr<std::vector<int64_t>> axes = NormalizeAxes("DotGeneral", all, rank);
  if (!axes.ok()) return axes.status();
  const auto middle = axes->begin() + static_cast<int64_t>(contracting.size());
  return OperandAxes{.contracting = {axes->begin(), middle}, .batching = {middle, axes->end()}};
}

bool HaveEqualSizes(const Tensor& lhs, const std::vector<int64_t>& lhs_axes, const Tensor& rhs,
                    const std::vector<int64_t>& rhs_axes) {
  return std::equal(lhs_axes.begin(), lhs_axes.end(), rhs_axes.begin(), rhs_axes.end(), [&](int64_t l, int64_t r) {
    return MayBeEqual(lhs.shape()[static_cast<size_t>(l)], rhs.shape()[static_cast<size_t>(r)]);
  });
}

void AppendFreeSizes(const Tensor& tensor, const OperandAxes& axes, Shape* shape) {
  for (int64_t axis = 0; axis < tensor.rank(); ++axis) {
    const bool is_free = std::find(axes.contracting.begin(), axes.contracting.end(), axis) == axes.contracting.end() &&
                         std::find(axes.batching.begin(), axes.batching.end(), axis) == axes.batching.end();
    if (is_free) shape->push_back(tensor.shape()[static_cast<size_t>(axis)]);
  }
}

// [0, count).
std::vector<int64_t> FirstAxes(int64_t count) {
  std::vector<int64_t> axes(static_cast<size_t>(count));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// Both operands have rank 2 at least, and equal dimensions before the matrices.
Tensor BatchedMatMul(const Tensor& a, const Tensor& b, Algebra algebra) {
  const int64_t batch_rank = a.rank() - 2;
  const Tensor product = DotGeneral(a, b,
                                    {.lhs_contracting = {-1},
                                     .rhs_contracting = {-2},
                                     .lhs_batching = FirstAxes(batch_rank),
                                     .rhs_batching = FirstAxes(batch_rank)},
                                    std::nullopt, algebra);
  if (batch_rank == 0) return product;
  // [m, n, batch…] to [batch…, m, n].
  std::vector<int64_t> permutation = FirstAxes(product.rank());
  std::rotate(permutation.begin(), permutation.begin() + 2, permutation.end());
  return Transpose(product, permutation);
}

// Both operands have rank 2 at least.
Tensor MatrixMatMul(const Tensor& a, const Tensor& b, Algebra algebra) {
  // Leading axes of the left operand alone are just more rows.
  if (b.rank() == 2) {
    return DotGeneral(a, b, {.lhs_contracting = {-1}, .rhs_contracting = {0}}, std::nullopt, algebra);
  }
  if (a.rank() == 2) {
    // [m, batch…, n] to [batch…, m, n], which spares a copy of the left operand for each matrix on the right.
    const Tensor product = DotGeneral(a, b, {.lhs_contracting = {-1}, .rhs_contracting = {-2}}, std::nullopt, algebra);
    std::vector<int64_t> permutation = FirstAxes(product.rank());
    std::rotate(permutation.begin(), permutation.begin() + 1, permutation.end() - 1);
    return Transpose(product, permutation);
  }
  absl::StatusOr<Shape> batch = BroadcastShapes("MatMul", absl::MakeConstSpan(a.shape()).first(a.shape().size() - 2),
                                                absl::MakeConstSpan(b.shape()).first(b.shape().size() - 2));
  if (!batch.ok()) return Tensor::Failed(batch.status());
  const auto with_batch = [&batch, &a, &b](const Tensor& x) {
    Shape shape = *batch;
    shape.insert(shape.end(), x.shape().end() - 2, x.shape().end());
    return BroadcastLike(x, shape, {a, b});
  };
  return BatchedMatMul(with_batch(a), with_batch(b), algebra);
}

}  // namespace

Tensor DotGeneral(const TensorArg& lhs, const TensorArg& rhs, const DotDimensions& dimensions,
                  std::optional<DType> result_dtype, Algebra algebra) {
  const RecordedCall call("DotGeneral", lhs.place());
  if (!lhs.ok()) return lhs;
  if (!rhs.ok()) return rhs;
  if (lhs.dtype() != rhs.dtype()) {
    return RefusedOperation("DotGeneral", absl::StrCat("dtypes differ, and nothing is converted unasked: ",
                                                       DTypeName(lhs.dtype()), " and ", DTypeName(rhs.dtype())));
  }
  absl::StatusOr<OperandAxes> left = Normalize(dimensions.lhs_contracting, dimensions.lhs_batching, lhs.rank());
  if (!left.ok()) return Tensor::Failed(left.status());
  absl::StatusOr<OperandAxes> right = Normalize(dimensions.rhs_contracting, dimensions.rhs_batching, rhs.rank());
  if (!right.ok()) return Tensor::Failed(right.status());
  if (!HaveEqualSizes(lhs, left->contracting, rhs, right->contracting) ||
      !HaveEqualSizes(lhs, left->batching, rhs, right->batching)) {
    return RefusedOperation("DotGeneral",
                            absl::StrCat("paired axes differ in number or size: ", ShapeToString(lhs.shape()), " and ",
                                         ShapeToString(rhs.shape())));
  }

  v1::Node op;
  v1::DotGeneral& dot = *op.mutable_dot_general();
  dot.mutable_lhs_contracting_dimensions()->Assign(left->contracting.begin(), left->contracting.end());
  dot.mutable_rhs_contracting_dimensions()->Assign(right->contracting.begin(), right->contracting.end());
  dot.mutable_lhs_batching_dimensions()->Assign(left->batching.begin(), left->batching.end());
  dot.mutable_rhs_batching_dimensions()->Assign(right->batching.begin(), right->batching.end());
  if (result_dtype.has_value()) dot.set_result_dtype(ToWire(*result_dtype));
  dot.set_algebra(static_cast<v1::Algebra>(algebra));
  Shape shape;
  AppendFreeSizes(lhs, *left, &shape);
  AppendFreeSizes(rhs, *right, &shape);
  for (int64_t axis : left->batching) shape.push_back(lhs.shape()[static_cast<size_t>(axis)]);
  return Tensor::FromOp(std::move(op), {lhs, rhs}, result_dtype.value_or(lhs.dtype()), std::move(shape));
}

Tensor MatMul(const TensorArg& a, const TensorArg& b, Algebra algebra) {
  const RecordedCall call("MatMul", a.place());
  if (!a.ok()) return a;
  if (!b.ok()) return b;
  if (a.rank() == 0 || b.rank() == 0)
    return RefusedOperation("MatMul", "needs vectors or matrices: an operand has rank 0");
  const int64_t summed_a = a.shape().back();
  const int64_t summed_b = b.rank() == 1 ? b.shape()[0] : b.shape()[b.shape().size() - 2];
  if (!MayBeEqual(summed_a, summed_b)) {
    return RefusedOperation("MatMul", absl::StrCat("the summed axes differ in size: ", ShapeToString(a.shape()),
                                                   " and ", ShapeToString(b.shape())));
  }
  if (b.rank() == 1) {
    return DotGeneral(a, b, {.lhs_contracting = {-1}, .rhs_contracting = {0}}, std::nullopt, algebra);
  }
  // A vector on the left: its axis is summed, and all other axes of the right operand stay in order.
  if (a.rank() == 1) {
    return DotGeneral(a, b, {.lhs_contracting = {0}, .rhs_contracting = {-2}}, std::nullopt, algebra);
  }
  return MatrixMatMul(a, b, algebra);
}

}  // namespace tensord::client
