#include "tensord/tensor.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensord/half_types.h"

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

Tensor Tensor::Failed(absl::Status status) {
  auto expression = std::make_shared<Expression>();
  expression->status = status.ok() ? absl::InternalError("a tensor failed, and nobody said why") : std::move(status);
  return Tensor(std::move(expression));
}

Tensor Tensor::FromOp(v1::Node op, const std::vector<Tensor>& operands, DType dtype, Shape shape) {
  auto expression = std::make_shared<Expression>();
  expression->operands.reserve(operands.size());
  for (const Tensor& operand : operands) {
    if (!operand.ok()) return operand;
    expression->operands.push_back(operand.expression());
  }
  expression->op = std::move(op);
  expression->dtype = dtype;
  expression->shape = std::move(shape);
  return Tensor(std::move(expression));
}

Tensor Operand::AsTensor(DType dtype) const {
  if (tensor_.has_value()) return *tensor_;
  absl::StatusOr<HostTensor> value = std::visit([dtype](auto literal) { return LiteralOf(literal, dtype); }, literal_);
  return value.ok() ? Tensor::Constant(*std::move(value)) : Tensor::Failed(value.status());
}

}  // namespace tensord::client
