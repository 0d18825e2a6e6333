#ifndef TENSORD_TENSOR_H_
#define TENSORD_TENSOR_H_

#include <complex>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "tensord/expression.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// A tensor that is computed when its value is asked for (evaluation.h): operations on it only record their work, and
// know dtype and shape at once. A value type; copies are cheap and share the record. Thread-compatible.
//
// An operation that cannot be (shapes that do not broadcast, dtypes that differ) gives a failed tensor: status() has
// the reason, every operation on it fails likewise, and evaluation returns the first failure.
//
//   Tensor x = Tensor::FromVector<float>({1, 2, 3, 4}, {2, 2});
//   Tensor y = Tanh(MatMul(x, Transpose(x))) + 1.0;
//   absl::StatusOr<HostTensor> value = Eval(*client, y);
//
// A moved-from tensor is still the same tensor.
class Tensor {
 public:
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;

  // Returns a graph input: the program that is compiled serves every value of this dtype and shape.
  static Tensor FromHost(HostTensor value);
  template <typename T>
  static Tensor FromVector(std::vector<T> values, Shape shape, MemoryOrder order = MemoryOrder::kRowMajor);

  // Returns a value that becomes part of the program, which is compiled anew for another value.
  static Tensor Constant(HostTensor value);

  // Returns a failed tensor, with INTERNAL if the status is none.
  static Tensor Failed(absl::Status status);

  // A failed tensor has a meaningless dtype and shape (F32, rank 0).
  const absl::Status& status() const { return expression_->status; }
  bool ok() const { return expression_->status.ok(); }
  DType dtype() const { return expression_->dtype; }
  const Shape& shape() const { return expression_->shape; }
  int64_t rank() const { return static_cast<int64_t>(expression_->shape.size()); }

  // Makes a tensor for functions that make operations. `op` has neither name nor inputs; the result is the first
  // failure among the operands, if there is one.
  static Tensor FromOp(v1::Node op, const std::vector<Tensor>& operands, DType dtype, Shape shape);
  const std::shared_ptr<const Expression>& expression() const { return expression_; }

 private:
  explicit Tensor(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const Expression> expression_;
};

// Types whose literals an operation takes beside tensors. Unsigned 64-bit numbers are left out: not all fit a dtype.
template <typename T>
concept LiteralNumber = std::floating_point<T> ||(std::integral<T> && (sizeof(T) < 8 || std::is_signed_v<T>));

// An argument of an operation: a tensor, or a number that becomes a constant of the other operand's dtype. A whole
// number goes with any numeric dtype that can hold it. A floating-point number goes with floating-point and complex
// dtypes and is rounded, unless it is out of range; a complex number with complex ones, and a bool with BOOL. Anything
// else fails, and so does an operation on literals alone.
class Operand {
 public:
  Operand(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor)
  template <LiteralNumber T>
  Operand(T literal);                                           // NOLINT(google-explicit-constructor)
  Operand(std::complex<double> literal) : literal_(literal) {}  // NOLINT(google-explicit-constructor)
  Operand(std::complex<float> literal) : literal_(std::complex<double>(literal)) {}  // NOLINT

  bool is_literal() const { return !tensor_.has_value(); }
  // Returns the tensor of an operand that is no literal.
  const Tensor& tensor() const { return *tensor_; }

  // Returns the tensor, or the literal as a constant of rank 0 (failed where `dtype` does not take it).
  Tensor AsTensor(DType dtype) const;

 private:
  std::optional<Tensor> tensor_;
  std::variant<bool, int64_t, double, std::complex<double>> literal_;
};

template <typename T>
Tensor Tensor::FromVector(std::vector<T> values, Shape shape, MemoryOrder order) {
  absl::StatusOr<HostTensor> host = HostTensor::FromVector(std::move(values), std::move(shape), order);
  return host.ok() ? FromHost(*std::move(host)) : Failed(host.status());
}

template <LiteralNumber T>
Operand::Operand(T literal) {
  if constexpr (std::is_same_v<T, bool>) {
    literal_ = literal;
  } else if constexpr (std::integral<T>) {
    literal_ = static_cast<int64_t>(literal);
  } else {
    literal_ = static_cast<double>(literal);
  }
}

}  // namespace tensord::client

#endif  // TENSORD_TENSOR_H_
