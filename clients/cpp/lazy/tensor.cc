#include "tensord/tensor.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/lazy/expression.h"
#include "clients/cpp/lazy/recorded_call.h"
#include "clients/cpp/lazy/refused_operation.h"
#include "tensord/dtype.h"
#include "tensord/v1/graph.pb.h"

namespace tensord::client {
namespace {

absl::Status LiteralRefused(absl::string_view literal, DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat("a literal does not go with the other operand's dtype: ", literal, " and ", DTypeName(dtype)));
}

absl::Status LiteralTooLarge(absl::string_view literal, DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat("a literal is beyond the other operand's dtype: ", literal, " and ", DTypeName(dtype)));
}

absl::StatusOr<HostTensor> LiteralOf(bool value, DType dtype) {
  if (dtype != DType::kBool) return LiteralRefused(value ? "true" : "false", dtype);
  return HostTensor::Scalar(value);
}

// Rounds to a floating-point dtype.
HostTensor Rounded(double value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return HostTensor::Scalar(Half::FromFloat(static_cast<float>(value)));
    case DType::kBF16:
      return HostTensor::Scalar(BFloat16::FromFloat(static_cast<float>(value)));
    case DType::kF32:
      return HostTensor::Scalar(static_cast<float>(value));
    default:
      return HostTensor::Scalar(value);
  }
}

// Returns the value of a number that `Rounded` made.
double ValueOf(const HostTensor& scalar) {
  switch (scalar.dtype()) {
    case DType::kF16:
      return (*scalar.Values<Half>())[0].ToFloat();
    case DType::kBF16:
      return (*scalar.Values<BFloat16>())[0].ToFloat();
    case DType::kF32:
      return (*scalar.Values<float>())[0];
    default:
      return (*scalar.Values<double>())[0];
  }
}

// Tells whether a finite number becomes an infinity.
bool Overflows(double value, DType dtype) {
  return std::isfinite(value) && !std::isfinite(ValueOf(Rounded(value, dtype)));
}

// Tells whether a whole number keeps its value. The conversion to double is compared apart, as it may round too, and
// 2^63, to which the greatest numbers round, has no int64_t.
bool Holds(int64_t value, DType dtype) {
  const double nearest = static_cast<double>(value);
  constexpr double kTooLarge = 0x1p63;
  return nearest < kTooLarge && static_cast<int64_t>(nearest) == value && ValueOf(Rounded(nearest, dtype)) == nearest;
}

absl::StatusOr<HostTensor> LiteralOf(std::complex<double> value, DType dtype) {
  const std::string text = absl::StrCat(value.real(), "+", value.imag(), "i");
  if (!IsComplex(dtype)) return LiteralRefused(text, dtype);
  if (dtype == DType::kC128) return HostTensor::Scalar(value);
  if (Overflows(value.real(), DType::kF32) || Overflows(value.imag(), DType::kF32)) return LiteralTooLarge(text, dtype);
  return HostTensor::Scalar(std::complex<float>(value));
}

absl::StatusOr<HostTensor> LiteralOf(double value, DType dtype) {
  if (IsComplex(dtype)) {
    if (Overflows(value, RealPart(dtype))) return LiteralTooLarge(absl::StrCat(value), dtype);
    return LiteralOf(std::complex<double>(value), dtype);
  }
  if (!IsFloat(dtype)) return LiteralRefused(absl::StrCat(value), dtype);
  if (Overflows(value, dtype)) return LiteralTooLarge(absl::StrCat(value), dtype);
  return Rounded(value, dtype);
}

absl::StatusOr<HostTensor> LiteralOf(int64_t value, DType dtype) {
  if (dtype == DType::kI64) return HostTensor::Scalar(value);
  if (dtype == DType::kI32 && value >= std::numeric_limits<int32_t>::min() &&
      value <= std::numeric_limits<int32_t>::max()) {
    return HostTensor::Scalar(static_cast<int32_t>(value));
  }
  if (!IsFloat(dtype) && !IsComplex(dtype)) return LiteralRefused(absl::StrCat(value), dtype);
  if (!Holds(value, RealPart(dtype))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a whole number is not one of the other operand's dtype; write it as a floating-point literal to "
                     "have it rounded: ",
                     value, " and ", DTypeName(dtype)));
  }
  return LiteralOf(static_cast<double>(value), dtype);
}

// Adds the place of the user's call, if one is under way.
absl::Status WithPlace(const absl::Status& status) {
  const RecordedCall* call = RecordedCall::Outermost();
  if (call == nullptr) return status;
  absl::Status placed(status.code(),
                      absl::StrCat(status.message(), "; at ", FileOf(call->place()), ":", call->place().line()));
  status.ForEachPayload([&placed](absl::string_view type, const absl::Cord& value) { placed.SetPayload(type, value); });
  return placed;
}

absl::StatusOr<HostTensor> LiteralOf(uint64_t value, DType dtype) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return LiteralOf(static_cast<int64_t>(value), dtype);
  }
  return LiteralTooLarge(absl::StrCat(value), dtype);
}

}  // namespace

Tensor Tensor::FromHost(HostTensor value) {
  auto expression = std::make_shared<Expression>();
  expression->dtype = value.dtype();
  expression->shape = value.shape();
  expression->host = std::move(value);
  return Tensor(std::move(expression));
}

Tensor Tensor::Constant(HostTensor value) {
  v1::Node op;
  v1::Tensor& wire = *op.mutable_constant()->mutable_value();
  wire.set_dtype(ToWire(value.dtype()));
  for (int64_t dim : value.shape()) wire.add_shape(dim);
  wire.set_order(ToWire(value.order()));
  wire.set_data(value.bytes(), value.size_bytes());
  return FromOp(std::move(op), {}, value.dtype(), value.shape());
}

const absl::Status& Tensor::status() const { return expression_->status; }

DType Tensor::dtype() const { return expression_->dtype; }

const Shape& Tensor::shape() const { return expression_->shape; }

Tensor Tensor::Parameter(std::string name, DType dtype, Shape shape) {
  if (name.empty() || absl::StrContains(name, ':')) {
    return Failed(absl::InvalidArgumentError(absl::StrCat("a parameter needs a name without ':': \"", name, "\"")));
  }
  for (int64_t dim : shape) {
    if (IsSymbol(dim) || dim >= 0) continue;
    return Failed(absl::InvalidArgumentError(absl::StrCat(
        "a parameter's size is a number from 0 on, or a symbol: ", name, " of shape ", ShapeToString(shape))));
  }
  auto expression = std::make_shared<Expression>();
  expression->dtype = dtype;
  expression->shape = std::move(shape);
  expression->parameter = std::move(name);
  return Tensor(std::move(expression));
}

Tensor::Tensor() {
  static const std::shared_ptr<const Expression> unassigned = [] {
    auto expression = std::make_shared<Expression>();
    expression->status =
        absl::FailedPreconditionError("a tensor was made without a value, and none was assigned to it");
    return expression;
  }();
  expression_ = unassigned;
}

Tensor Tensor::Failed(absl::Status status) {
  auto expression = std::make_shared<Expression>();
  expression->status = WithPlace(status.ok() ? absl::InternalError("a tensor failed, and nobody said why") : status);
  return Tensor(std::move(expression));
}

Tensor Tensor::FailedAt(const absl::Status& status, const SourceLocation& place) {
  const RecordedCall call("FromVector", place);
  return Failed(status);
}

Tensor Tensor::FromOp(v1::Node op, const std::vector<Tensor>& operands, DType dtype, Shape shape,
                      const SourceLocation& place) {
  const std::vector<ResultType> results = {{.dtype = dtype, .shape = std::move(shape)}};
  return FromOp(std::move(op), operands, results, place).front();
}

std::vector<Tensor> Tensor::FromOp(v1::Node op, const std::vector<Tensor>& operands,
                                   const std::vector<ResultType>& results, const SourceLocation& place) {
  const auto failed = std::find_if(operands.begin(), operands.end(), [](const Tensor& x) { return !x.ok(); });
  if (failed != operands.end()) return std::vector<Tensor>(results.size(), *failed);
  std::shared_ptr<Expression> node;
  std::vector<Tensor> tensors;
  for (const ResultType& type : results) {
    auto expression = std::make_shared<Expression>();
    expression->dtype = type.dtype;
    expression->shape = type.shape;
    if (node != nullptr) {
      expression->result = static_cast<int64_t>(tensors.size());
      expression->operands = {node};
    } else {
      for (const Tensor& operand : operands) expression->operands.push_back(operand.expression());
      expression->op = std::move(op);
      const RecordedCall* call = RecordedCall::Outermost();
      expression->call = call == nullptr ? absl::string_view() : call->name();
      expression->place = call == nullptr ? place : call->place();
      node = expression;
    }
    tensors.push_back(Tensor(std::move(expression)));
  }
  return tensors;
}

Tensor Operand::AsTensor(absl::string_view op, DType dtype) const {
  if (tensor_.has_value()) return *tensor_;
  absl::StatusOr<HostTensor> value = std::visit([dtype](auto literal) { return LiteralOf(literal, dtype); }, literal_);
  return value.ok() ? Tensor::Constant(*std::move(value)) : RefusedOperation(op, value.status().message());
}

}  // namespace tensord::client
