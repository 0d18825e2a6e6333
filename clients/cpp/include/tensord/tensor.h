#ifndef TENSORD_TENSOR_H_
#define TENSORD_TENSOR_H_

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensord/host_tensor.h"
#include "tensord/message_names.h"
#include "tensord/source_location.h"
#include "tensord/subscript.h"

namespace tensord::client {

struct Expression;

// Dtype and shape of one result of an operation.
struct ResultType {
  DType dtype = DType::kF32;
  Shape shape;
};

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
// A moved-from tensor is still the same tensor. A default-constructed one is a failed tensor, until one is assigned.
class Tensor {
 public:
  Tensor();
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;

  // Returns a graph input: the program that is compiled serves every value of this dtype and shape.
  static Tensor FromHost(HostTensor value);
  // Takes the vector without a copy; failed, in the name of `place`, unless it has product(shape) elements.
  template <typename T>
  static Tensor FromVector(std::vector<T> values, Shape shape, MemoryOrder order = MemoryOrder::kRowMajor,
                           const SourceLocation& place = SourceLocation::current());

  // Returns a value that becomes part of the program, which is compiled anew for another value.
  static Tensor Constant(HostTensor value);

  // Returns an input without a value, of a function that is traced (evaluation.h) or compiled (program.h). Sizes may be
  // symbols (shape.h). Fails if a size is negative or the name is empty or has a ':'.
  static Tensor Parameter(std::string name, DType dtype, Shape shape);

  // Returns a failed tensor, with INTERNAL if the status is none.
  static Tensor Failed(absl::Status status);

  // A failed tensor has a meaningless dtype and shape (F32, rank 0).
  const absl::Status& status() const;
  bool ok() const { return status().ok(); }
  DType dtype() const;
  const Shape& shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }

  // Returns the part that subscripts name (subscript.h), failed if an index is out of bounds. An axis of a size that
  // only the run knows takes ranges of step 1 and -1, whose sizes only the run knows too, and no index.
  Tensor operator[](std::initializer_list<Subscript> subscripts) const;
  Tensor operator[](Subscript subscript) const { return (*this)[std::initializer_list<Subscript>{subscript}]; }

  // Makes a tensor for functions that make operations. `op` has neither name nor inputs; the result is the first
  // failure among the operands, if there is one. Nodes and failures name `place`.
  static Tensor FromOp(v1::Node op, const std::vector<Tensor>& operands, DType dtype, Shape shape,
                       const SourceLocation& place = SourceLocation::current());
  // Makes the tensors of an operation with several results, one for each type.
  static std::vector<Tensor> FromOp(v1::Node op, const std::vector<Tensor>& operands,
                                    const std::vector<ResultType>& results,
                                    const SourceLocation& place = SourceLocation::current());
  static Tensor FromExpression(std::shared_ptr<const Expression> expression) { return Tensor(std::move(expression)); }
  const std::shared_ptr<const Expression>& expression() const { return expression_; }

 private:
  // Returns a failed tensor of a FromVector that stands there.
  static Tensor FailedAt(const absl::Status& status, const SourceLocation& place);

  explicit Tensor(std::shared_ptr<const Expression> expression) : expression_(std::move(expression)) {}

  std::shared_ptr<const Expression> expression_;
};

// A tensor as the argument of an operation, with the place of the call, which failures and nodes name. Made by the call
// itself: programs pass a Tensor.
class TensorArg : public Tensor {
 public:
  TensorArg(const Tensor& tensor,  // NOLINT(google-explicit-constructor): Exp(x)
            const SourceLocation& place = SourceLocation::current())
      : Tensor(tensor), place_(place) {}

  const SourceLocation& place() const { return place_; }

 private:
  SourceLocation place_;
};

// Types whose literals an operation takes beside tensors. A long double is rounded to a double.
template <typename T>
concept LiteralNumber = std::floating_point<T> || std::integral<T>;

// An argument of an operation: a tensor, or a number that becomes a constant of the other operand's dtype. A whole
// number goes with any numeric dtype that can hold it. A floating-point number goes with floating-point and complex
// dtypes and is rounded, unless it is out of range; a complex number with complex ones, and a bool with BOOL. Anything
// else fails, and so does an operation on literals alone.
class Operand {
 public:
  using Place = SourceLocation;

  Operand(Tensor tensor, const Place& place = Place::current())  // NOLINT(google-explicit-constructor): x + y
      : tensor_(std::move(tensor)), place_(place) {}
  template <LiteralNumber T>
  Operand(T literal, const Place& place = Place::current());                    // NOLINT(google-explicit-constructor)
  Operand(std::complex<double> literal, const Place& place = Place::current())  // NOLINT(google-explicit-constructor)
      : literal_(literal), place_(place) {}
  Operand(std::complex<float> literal, const Place& place = Place::current())  // NOLINT(google-explicit-constructor)
      : literal_(std::complex<double>(literal)), place_(place) {}

  bool is_literal() const { return !tensor_.has_value(); }
  // Returns the tensor of an operand that is no literal.
  const Tensor& tensor() const { return *tensor_; }
  // Returns the place of the call.
  const Place& place() const { return place_; }

  // Returns the tensor, or the literal as a constant of rank 0 (failed, in the name of `op`, where `dtype` does not
  // take it).
  Tensor AsTensor(absl::string_view op, DType dtype) const;

 private:
  std::optional<Tensor> tensor_;
  std::variant<bool, int64_t, uint64_t, double, std::complex<double>> literal_;
  Place place_;
};

template <typename T>
Tensor Tensor::FromVector(std::vector<T> values, Shape shape, MemoryOrder order, const SourceLocation& place) {
  absl::StatusOr<HostTensor> host = HostTensor::FromVector(std::move(values), std::move(shape), order);
  return host.ok() ? FromHost(*std::move(host)) : FailedAt(host.status(), place);
}

template <LiteralNumber T>
Operand::Operand(T literal, const Place& place) : place_(place) {
  if constexpr (std::is_same_v<T, bool>) {
    literal_ = literal;
  } else if constexpr (std::unsigned_integral<T>) {
    literal_ = static_cast<uint64_t>(literal);
  } else if constexpr (std::integral<T>) {
    literal_ = static_cast<int64_t>(literal);
  } else {
    literal_ = static_cast<double>(literal);
  }
}

}  // namespace tensord::client

#endif  // TENSORD_TENSOR_H_
