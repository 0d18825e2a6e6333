#include "tensord/elementwise.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/structural.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

Tensor Unary(absl::string_view name, v1::UnaryOp kind, const TensorArg& x, DType result) {
  const RecordedCall call(name, x.place());
  v1::Node op;
  op.set_unary(kind);
  return Tensor::FromOp(std::move(op), {x}, result, x.shape());
}

Tensor Unary(absl::string_view name, v1::UnaryOp kind, const TensorArg& x) { return Unary(name, kind, x, x.dtype()); }

// Operands of one dtype and one shape, or the reason why there are none.
struct Matched {
  std::optional<Tensor> failed;
  std::vector<Tensor> operands;
  Shape shape;
};

// Turns literals into constants of the tensors' dtype, and finds the shape that all broadcast to.
Matched Match(absl::string_view op, const std::vector<Operand>& operands) {
  Matched matched;
  std::optional<DType> dtype;
  for (const Operand& operand : operands) {
    if (operand.is_literal()) continue;
    if (!operand.tensor().ok()) return {.failed = operand.tensor()};
    if (dtype.has_value() && *dtype != operand.tensor().dtype()) {
      return {.failed = RefusedOperation(
                  op, absl::StrCat("dtypes differ, and nothing is converted unasked: ", DTypeName(*dtype), " and ",
                                   DTypeName(operand.tensor().dtype())))};
    }
    dtype = operand.tensor().dtype();
  }
  if (!dtype.has_value()) {
    return {.failed = RefusedOperation(op, "needs a tensor beside its literals")};
  }
  for (const Operand& operand : operands) {
    Tensor tensor = operand.AsTensor(op, *dtype);
    if (!tensor.ok()) return {.failed = std::move(tensor)};
    absl::StatusOr<Shape> shape = BroadcastShapes(op, matched.shape, tensor.shape());
    if (!shape.ok()) return {.failed = Tensor::Failed(shape.status())};
    matched.shape = *std::move(shape);
    matched.operands.push_back(std::move(tensor));
  }
  return matched;
}

Matched MatchAndBroadcast(absl::string_view op, const std::vector<Operand>& operands) {
  Matched matched = Match(op, operands);
  const std::vector<Tensor> sources = matched.operands;
  for (Tensor& operand : matched.operands) operand = BroadcastLike(operand, matched.shape, sources);
  return matched;
}

Tensor Binary(absl::string_view name, v1::BinaryOp kind, const Operand& a, const Operand& b) {
  const RecordedCall call(name, a.place());
  Matched matched = MatchAndBroadcast(name, {a, b});
  if (matched.failed.has_value()) return *matched.failed;
  v1::Node op;
  op.set_binary(kind);
  const DType dtype = matched.operands[0].dtype();
  return Tensor::FromOp(std::move(op), matched.operands, dtype, std::move(matched.shape));
}

Tensor CompareWith(absl::string_view name, v1::Compare::Direction direction, const Operand& a, const Operand& b) {
  const RecordedCall call(name, a.place());
  Matched matched = MatchAndBroadcast(name, {a, b});
  if (matched.failed.has_value()) return *matched.failed;
  v1::Node op;
  op.mutable_compare()->set_direction(direction);
  return Tensor::FromOp(std::move(op), matched.operands, DType::kBool, std::move(matched.shape));
}

}  // namespace

Tensor Negate(const TensorArg& x) { return Unary("Negate", v1::UNARY_OP_NEGATE, x); }
Tensor Conj(const TensorArg& x) { return Unary("Conj", v1::UNARY_OP_CONJ, x); }
Tensor Abs(const TensorArg& x) { return Unary("Abs", v1::UNARY_OP_ABS, x, RealPart(x.dtype())); }
Tensor Sign(const TensorArg& x) { return Unary("Sign", v1::UNARY_OP_SIGN, x); }
Tensor Exp(const TensorArg& x) { return Unary("Exp", v1::UNARY_OP_EXP, x); }
Tensor Expm1(const TensorArg& x) { return Unary("Expm1", v1::UNARY_OP_EXPM1, x); }
Tensor Log(const TensorArg& x) { return Unary("Log", v1::UNARY_OP_LOG, x); }
Tensor Log1p(const TensorArg& x) { return Unary("Log1p", v1::UNARY_OP_LOG1P, x); }
Tensor Sin(const TensorArg& x) { return Unary("Sin", v1::UNARY_OP_SIN, x); }
Tensor Cos(const TensorArg& x) { return Unary("Cos", v1::UNARY_OP_COS, x); }
Tensor Tan(const TensorArg& x) { return Unary("Tan", v1::UNARY_OP_TAN, x); }
Tensor Tanh(const TensorArg& x) { return Unary("Tanh", v1::UNARY_OP_TANH, x); }
Tensor Sqrt(const TensorArg& x) { return Unary("Sqrt", v1::UNARY_OP_SQRT, x); }
Tensor Rsqrt(const TensorArg& x) { return Unary("Rsqrt", v1::UNARY_OP_RSQRT, x); }
Tensor Cbrt(const TensorArg& x) { return Unary("Cbrt", v1::UNARY_OP_CBRT, x); }
Tensor Sinh(const TensorArg& x) { return Unary("Sinh", v1::UNARY_OP_SINH, x); }
Tensor Cosh(const TensorArg& x) { return Unary("Cosh", v1::UNARY_OP_COSH, x); }
Tensor Asin(const TensorArg& x) { return Unary("Asin", v1::UNARY_OP_ASIN, x); }
Tensor Acos(const TensorArg& x) { return Unary("Acos", v1::UNARY_OP_ACOS, x); }
Tensor Atan(const TensorArg& x) { return Unary("Atan", v1::UNARY_OP_ATAN, x); }
Tensor Asinh(const TensorArg& x) { return Unary("Asinh", v1::UNARY_OP_ASINH, x); }
Tensor Acosh(const TensorArg& x) { return Unary("Acosh", v1::UNARY_OP_ACOSH, x); }
Tensor Atanh(const TensorArg& x) { return Unary("Atanh", v1::UNARY_OP_ATANH, x); }
Tensor Log2(const TensorArg& x) { return Unary("Log2", v1::UNARY_OP_LOG2, x); }
Tensor Log10(const TensorArg& x) { return Unary("Log10", v1::UNARY_OP_LOG10, x); }
Tensor Exp2(const TensorArg& x) { return Unary("Exp2", v1::UNARY_OP_EXP2, x); }
Tensor Logistic(const TensorArg& x) { return Unary("Logistic", v1::UNARY_OP_LOGISTIC, x); }
Tensor Erf(const TensorArg& x) { return Unary("Erf", v1::UNARY_OP_ERF, x); }
Tensor Floor(const TensorArg& x) { return Unary("Floor", v1::UNARY_OP_FLOOR, x); }
Tensor Ceil(const TensorArg& x) { return Unary("Ceil", v1::UNARY_OP_CEIL, x); }
Tensor RoundNearestEven(const TensorArg& x) { return Unary("RoundNearestEven", v1::UNARY_OP_ROUND_NEAREST_EVEN, x); }
Tensor IsFinite(const TensorArg& x) { return Unary("IsFinite", v1::UNARY_OP_IS_FINITE, x, DType::kBool); }
Tensor Not(const TensorArg& x) { return Unary("Not", v1::UNARY_OP_NOT, x); }
Tensor Real(const TensorArg& x) { return Unary("Real", v1::UNARY_OP_REAL, x, RealPart(x.dtype())); }
Tensor Imag(const TensorArg& x) { return Unary("Imag", v1::UNARY_OP_IMAG, x, RealPart(x.dtype())); }

Tensor Add(const Operand& a, const Operand& b) { return Binary("Add", v1::BINARY_OP_ADD, a, b); }
Tensor Subtract(const Operand& a, const Operand& b) { return Binary("Subtract", v1::BINARY_OP_SUBTRACT, a, b); }
Tensor Multiply(const Operand& a, const Operand& b) { return Binary("Multiply", v1::BINARY_OP_MULTIPLY, a, b); }
Tensor Divide(const Operand& a, const Operand& b) { return Binary("Divide", v1::BINARY_OP_DIVIDE, a, b); }
Tensor Remainder(const Operand& a, const Operand& b) { return Binary("Remainder", v1::BINARY_OP_REMAINDER, a, b); }
Tensor Pow(const Operand& a, const Operand& b) { return Binary("Pow", v1::BINARY_OP_POW, a, b); }
Tensor Atan2(const Operand& y, const Operand& x) { return Binary("Atan2", v1::BINARY_OP_ATAN2, y, x); }
Tensor Maximum(const Operand& a, const Operand& b) { return Binary("Maximum", v1::BINARY_OP_MAXIMUM, a, b); }
Tensor Minimum(const Operand& a, const Operand& b) { return Binary("Minimum", v1::BINARY_OP_MINIMUM, a, b); }
Tensor And(const Operand& a, const Operand& b) { return Binary("And", v1::BINARY_OP_AND, a, b); }
Tensor Or(const Operand& a, const Operand& b) { return Binary("Or", v1::BINARY_OP_OR, a, b); }
Tensor Xor(const Operand& a, const Operand& b) { return Binary("Xor", v1::BINARY_OP_XOR, a, b); }

Tensor Complex(const Operand& real, const Operand& imaginary) {
  const RecordedCall call("Complex", real.place());
  Matched matched = MatchAndBroadcast("Complex", {real, imaginary});
  if (matched.failed.has_value()) return *matched.failed;
  const DType part = matched.operands[0].dtype();
  if (part != DType::kF32 && part != DType::kF64) {
    return Tensor::Failed(
        absl::InvalidArgumentError(absl::StrCat("Complex: parts must be f32 or f64: ", DTypeName(part))));
  }
  v1::Node op;
  op.set_binary(v1::BINARY_OP_COMPLEX);
  return Tensor::FromOp(std::move(op), matched.operands, part == DType::kF32 ? DType::kC64 : DType::kC128,
                        std::move(matched.shape));
}

Tensor Equal(const Operand& a, const Operand& b) { return CompareWith("Equal", v1::Compare::DIRECTION_EQ, a, b); }
Tensor NotEqual(const Operand& a, const Operand& b) { return CompareWith("NotEqual", v1::Compare::DIRECTION_NE, a, b); }
Tensor Less(const Operand& a, const Operand& b) { return CompareWith("Less", v1::Compare::DIRECTION_LT, a, b); }
Tensor LessEqual(const Operand& a, const Operand& b) {
  return CompareWith("LessEqual", v1::Compare::DIRECTION_LE, a, b);
}
Tensor Greater(const Operand& a, const Operand& b) { return CompareWith("Greater", v1::Compare::DIRECTION_GT, a, b); }
Tensor GreaterEqual(const Operand& a, const Operand& b) {
  return CompareWith("GreaterEqual", v1::Compare::DIRECTION_GE, a, b);
}

Tensor Select(const TensorArg& pred, const Operand& on_true, const Operand& on_false) {
  const RecordedCall call("Select", pred.place());
  if (!pred.ok()) return pred;
  if (pred.dtype() != DType::kBool) {
    return Tensor::Failed(
        absl::InvalidArgumentError(absl::StrCat("Select: the predicate must be bool: ", DTypeName(pred.dtype()))));
  }
  Matched matched = Match("Select", {on_true, on_false});
  if (matched.failed.has_value()) return *matched.failed;
  absl::StatusOr<Shape> shape = BroadcastShapes("Select", matched.shape, pred.shape());
  if (!shape.ok()) return Tensor::Failed(shape.status());
  const std::vector<Tensor> sources = {pred, matched.operands[0], matched.operands[1]};
  const Tensor condition = pred.rank() == 0 ? Tensor(pred) : BroadcastLike(pred, *shape, sources);
  v1::Node op;
  op.mutable_select();
  const DType dtype = matched.operands[0].dtype();
  return Tensor::FromOp(std::move(op),
                        {condition, BroadcastLike(matched.operands[0], *shape, sources),
                         BroadcastLike(matched.operands[1], *shape, sources)},
                        dtype, *shape);
}

Tensor Clamp(const Operand& min, const TensorArg& x, const Operand& max) {
  const RecordedCall call("Clamp", min.place());
  Matched matched = Match("Clamp", {min, x, max});
  if (matched.failed.has_value()) return *matched.failed;
  const std::vector<Tensor> sources = matched.operands;
  // Bounds of rank 0 need no broadcast.
  for (size_t i = 0; i < matched.operands.size(); ++i) {
    Tensor& operand = matched.operands[i];
    if (i == 1 || operand.rank() != 0) operand = BroadcastLike(operand, matched.shape, sources);
  }
  v1::Node op;
  op.mutable_clamp();
  return Tensor::FromOp(std::move(op), matched.operands, x.dtype(), std::move(matched.shape));
}

Tensor Convert(const TensorArg& x, DType dtype) {
  const RecordedCall call("Convert", x.place());
  if (x.ok() && x.dtype() == dtype) return x;
  v1::Node op;
  op.mutable_convert()->set_dtype(ToWire(dtype));
  return Tensor::FromOp(std::move(op), {x}, dtype, x.shape());
}

}  // namespace tensord::client
