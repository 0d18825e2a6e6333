#include "tensord/run_time_sizes.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
Tensor ShapeOf(const TensorArg& x, int64_t axis) {
  const RecordedCall call("ShapeOf", x.place());
  if (!x.ok()) return x;
  absl::StatusOr<int64_t> dimension = NormalizeAxis("ShapeOf", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  v1::Node op;
  op.mutable_shape_of()->set_dimension(*dimension);
  return Tensor::FromOp(std::move(op), {x}, DType::kI64, {});
}

Tensor DynamicTruncate(const TensorArg& x, const TensorArg& size, int64_t axis) {
  const RecordedCall call("DynamicTruncate", x.place());
  if (!x.ok()) return x;
  if (!size.ok()) return size;
  absl::StatusOr<int64_t> dimension = NormalizeAxis("DynamicTruncate", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  if (size.rank() != 0 || !IsInteger(size.dtype())) {
    return RefusedOperation("DynamicTruncate", absl::StrCat("the size must be an i32 or i64 of rank 0: ",
                                                            DTypeName(size.dtype()), ShapeToString(size.shape())));
  }
  v1::Node op;
  op.mutable_dynamic_truncate()->set_dimension(*dimension);
  Shape shape = x.shape();
  shape[static_cast<size_t>(*dimension)] = kRunTimeSize;
  return Tensor::FromOp(std::move(op), {x, size}, x.dtype(), std::move(shape));
}

Tensor PadToMatch(const TensorArg& x, const TensorArg& reference, int64_t axis) {
  const RecordedCall call("PadToMatch", x.place());
  if (!x.ok()) return x;
  if (!reference.ok()) return reference;
  absl::StatusOr<int64_t> dimension = NormalizeAxis("PadToMatch", axis, x.rank());
  if (!dimension.ok()) return Tensor::Failed(dimension.status());
  if (*dimension >= reference.rank()) {
    return RefusedOperation("PadToMatch", absl::StrCat("the reference lacks the axis: axis ", *dimension, " of ",
                                                       ShapeToString(reference.shape())));
  }
  v1::Node op;
  op.mutable_pad_to_match()->set_dimension(*dimension);
  Shape shape = x.shape();
  int64_t& padded = shape[static_cast<size_t>(*dimension)];
  const int64_t wanted = reference.shape()[static_cast<size_t>(*dimension)];
  const bool is_static = !IsRunTimeSize(padded) && !IsRunTimeSize(wanted);
  if (padded != wanted) padded = is_static ? std::max(padded, wanted) : kRunTimeSize;
  return Tensor::FromOp(std::move(op), {x, reference}, x.dtype(), std::move(shape));
}

}  // namespace tensord::client
