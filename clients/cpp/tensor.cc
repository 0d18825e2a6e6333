#include "clients/cpp/tensor.h"

#include <limits>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

absl::Status LiteralRefused(absl::string_view literal, DType dtype) {
  return absl::InvalidArgumentError(
      absl::StrCat("a literal does not go with the other operand's dtype: ", literal, " and ", DTypeName(dtype)));
}

absl::StatusOr<HostTensor> LiteralOf(bool value, DType dtype) {
  if (dtype != DType::kBool) return LiteralRefused(value ? "true" : "false", dtype);
  return HostTensor::Scalar(value);
}

absl::StatusOr<HostTensor> LiteralOf(std::complex<double> value, DType dtype) {
  if (dtype == DType::kC64) return HostTensor::Scalar(std::complex<float>(value));
  if (dtype == DType::kC128) return HostTensor::Scalar(value);
  return LiteralRefused(absl::StrCat(value.real(), "+", value.imag(), "i"), dtype);
}

absl::StatusOr<HostTensor> LiteralOf(double value, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return HostTensor::Scalar(Half::FromFloat(static_cast<float>(value)));
    case DType::kBF16:
      return HostTensor::Scalar(BFloat16::FromFloat(static_cast<float>(value)));
    case DType::kF32:
      return HostTensor::Scalar(static_cast<float>(value));
    case DType::kF64:
      return HostTensor::Scalar(value);
    case DType::kC64:
    case DType::kC128:
      return LiteralOf(std::complex<double>(value), dtype);
    case DType::kBool:
    case DType::kI32:
    case DType::kI64:
      break;
  }
  return LiteralRefused(absl::StrCat(value), dtype);
}

absl::StatusOr<HostTensor> LiteralOf(int64_t value, DType dtype) {
  if (dtype == DType::kI64) return HostTensor::Scalar(value);
  if (dtype == DType::kI32 && value >= std::numeric_limits<int32_t>::min() &&
      value <= std::numeric_limits<int32_t>::max()) {
    return HostTensor::Scalar(static_cast<int32_t>(value));
  }
  if (IsFloat(dtype) || IsComplex(dtype)) return LiteralOf(static_cast<double>(value), dtype);
  return LiteralRefused(absl::StrCat(value), dtype);
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
  expression->status = std::move(status);
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
