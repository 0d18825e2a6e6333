#include "tensord/reduction.h"

#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "tensord/elementwise.h"
#include "tensord/run_time_sizes.h"
#include "tensord/structural.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

std::vector<int64_t> AllAxes(const Tensor& x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Tensor ReduceWith(absl::string_view name, v1::Reduce::Kind kind, const TensorArg& x, const std::vector<int64_t>& axes,
                  bool keep_dims) {
  const RecordedCall call(name, x.place());
  if (!x.ok()) return x;
  absl::StatusOr<std::vector<int64_t>> dimensions = NormalizeAxes(name, axes, x.rank());
  if (!dimensions.ok()) return Tensor::Failed(dimensions.status());
  v1::Node op;
  op.mutable_reduce()->set_kind(kind);
  std::vector<bool> is_reduced(x.shape().size(), false);
  for (int64_t dimension : *dimensions) {
    op.mutable_reduce()->add_dimensions(dimension);
    is_reduced[static_cast<size_t>(dimension)] = true;
  }
  Shape reduced;
  for (size_t axis = 0; axis < is_reduced.size(); ++axis) {
    if (!is_reduced[axis]) reduced.push_back(x.shape()[axis]);
  }
  Tensor result = Tensor::FromOp(std::move(op), {x}, x.dtype(), std::move(reduced));
  return keep_dims ? ExpandDims(result, *dimensions) : result;
}

}  // namespace

Tensor Sum(const TensorArg& x) { return Sum(x, AllAxes(x)); }
Tensor Sum(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("Sum", v1::Reduce::KIND_SUM, x, axes, keep_dims);
}

Tensor Product(const TensorArg& x) { return Product(x, AllAxes(x)); }
Tensor Product(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("Product", v1::Reduce::KIND_PRODUCT, x, axes, keep_dims);
}

Tensor Max(const TensorArg& x) { return Max(x, AllAxes(x)); }
Tensor Max(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("Max", v1::Reduce::KIND_MAX, x, axes, keep_dims);
}

Tensor Min(const TensorArg& x) { return Min(x, AllAxes(x)); }
Tensor Min(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("Min", v1::Reduce::KIND_MIN, x, axes, keep_dims);
}

Tensor All(const TensorArg& x) { return All(x, AllAxes(x)); }
Tensor All(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("All", v1::Reduce::KIND_AND, x, axes, keep_dims);
}

Tensor Any(const TensorArg& x) { return Any(x, AllAxes(x)); }
Tensor Any(const TensorArg& x, const Axes& axes, bool keep_dims) {
  return ReduceWith("Any", v1::Reduce::KIND_OR, x, axes, keep_dims);
}

Tensor Mean(const TensorArg& x) { return Mean(x, AllAxes(x)); }
Tensor Mean(const TensorArg& x, const Axes& axes, bool keep_dims) {
  const RecordedCall call("Mean", x.place());
  if (!x.ok()) return x;
  if (!IsFloat(x.dtype()) && !IsComplex(x.dtype())) {
    return Tensor::Failed(absl::InvalidArgumentError(
        absl::StrCat("Mean: needs a floating-point or complex tensor; convert it: ", DTypeName(x.dtype()))));
  }
  absl::StatusOr<std::vector<int64_t>> dimensions = NormalizeAxes("Mean", axes.values(), x.rank());
  if (!dimensions.ok()) return Tensor::Failed(dimensions.status());
  const bool is_half = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
  Tensor mean = Sum(is_half ? Convert(x, DType::kF32) : Tensor(x), *dimensions, keep_dims);
  double count = 1;
  for (int64_t dimension : *dimensions) {
    const int64_t size = x.shape()[static_cast<size_t>(dimension)];
    if (IsRunTimeSize(size)) {
      mean = mean / Convert(ShapeOf(x, dimension), mean.dtype());
    } else {
      count *= static_cast<double>(size);
    }
  }
  return Convert(mean / count, x.dtype());
}

}  // namespace tensord::client
