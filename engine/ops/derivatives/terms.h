#ifndef TENSORD_ENGINE_OPS_DERIVATIVES_TERMS_H_
#define TENSORD_ENGINE_OPS_DERIVATIVES_TERMS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/derivative.h"
#include "engine/ops/core_ops.h"

namespace tensord {

// Writes rules of derivatives as expressions of core ops. As in DerivativeBuilder, values are unset after a failure,
// and types may only be asked of values that came to the rule. Borrows the builder.
class Terms {
 public:
  explicit Terms(DerivativeBuilder& graph) : graph_(graph) {}

  ValueId Unary(CoreOp op, ValueId x) { return graph_.Add(Def(op), {x}); }
  ValueId Binary(CoreOp op, ValueId a, ValueId b) { return graph_.Add(Def(op), {a, b}); }
  ValueId Neg(ValueId x) { return Unary(CoreOp::kNegate, x); }
  ValueId Add(ValueId a, ValueId b) { return Binary(CoreOp::kAdd, a, b); }
  ValueId Sub(ValueId a, ValueId b) { return Binary(CoreOp::kSubtract, a, b); }
  ValueId Mul(ValueId a, ValueId b) { return Binary(CoreOp::kMultiply, a, b); }
  ValueId Div(ValueId a, ValueId b) { return Binary(CoreOp::kDivide, a, b); }
  // Returns the conjugate of a complex number, and a real number itself.
  ValueId Conj(ValueId x);
  // Returns the sum of those that are set; unset if none is.
  ValueId Sum(ValueId a, ValueId b);
  ValueId Compare(CompareDirection direction, ValueId a, ValueId b);
  ValueId Select(ValueId predicate, ValueId on_true, ValueId on_false) {
    return graph_.Add(Def(CoreOp::kSelect), {predicate, on_true, on_false});
  }
  // Returns x itself if it has the dtype.
  ValueId Convert(ValueId x, DType dtype);

  // Returns a number of rank 0.
  ValueId Scalar(double value, DType dtype);
  // Returns a vector of integers.
  ValueId Integers(absl::Span<const int64_t> values, DType dtype);
  // Returns a tensor full of a number, of the type or of x's type.
  ValueId Full(double value, const TensorType& type);
  ValueId Fill(double value, ValueId x) { return Full(value, graph_.type(x)); }
  ValueId Zeros(const TensorType& type) { return Full(0, type); }
  // Returns the value, or zeros of the type in its place.
  ValueId OrZeros(ValueId value, const TensorType& type) { return value.is_set() ? value : Zeros(type); }
  // Returns the size as an I64 of rank 0.
  ValueId SizeOf(const DimExpr& size);
  // Returns 0, 1, 2, … as a vector of I64 of that size.
  ValueId Counting(const Dim& size);

  ValueId Broadcast(ValueId x, const SymbolicShape& shape, std::vector<int64_t> dimensions);
  ValueId Reduce(ReduceKind kind, ValueId x, std::vector<int64_t> dimensions);
  ValueId Transpose(ValueId x, std::vector<int64_t> permutation);
  ValueId Reshape(ValueId x, const SymbolicShape& shape, Order order = Order::kUnspecified);
  ValueId Slice(ValueId x, std::vector<int64_t> starts, std::vector<int64_t> limits, std::vector<int64_t> strides);
  // Returns the window of x that begins at `starts`, I64 of rank 1 with an entry an axis, and has the shape.
  ValueId Window(ValueId x, ValueId starts, const SymbolicShape& shape);

  // Pads the high end of an axis with zeros to a size, if it is shorter.
  ValueId PaddedTo(ValueId x, size_t axis, const Dim& size);
  // Returns the first entries of x that make the shape.
  ValueId Head(ValueId x, const SymbolicShape& shape);
  // Returns x, of that shape, with an axis cut or padded with zeros to a size.
  ValueId Resized(ValueId x, SymbolicShape shape, size_t axis, const Dim& size);

 private:
  DerivativeBuilder& graph_;
};

// Returns the dtype in which equal elements of a dtype are counted: 16-bit floats have not all whole numbers.
DType CountingType(DType dtype);
// Returns the dtype in which tangents of many elements are summed before they are divided: 16-bit floats overflow soon.
DType SummingType(DType dtype);

// Returns the axes 0, 1, … of a rank.
std::vector<int64_t> AllAxes(size_t rank);

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_DERIVATIVES_TERMS_H_
