#ifndef TENSORD_HOST_TENSOR_H_
#define TENSORD_HOST_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensord/dtype.h"
#include "tensord/shape.h"

namespace tensord::client {

// A dense tensor in this process's memory: dtype, shape, order of elements, and bytes. An immutable value: copies share
// the bytes, and a call in flight keeps them alive, so sending a tensor never copies it. A moved-from tensor is still
// the same tensor. Thread-compatible. Factories return INVALID_ARGUMENT unless the bytes are exactly product(shape)
// elements.
class HostTensor {
 public:
  // Makes an empty F32 tensor of shape [0].
  HostTensor() = default;
  HostTensor(const HostTensor&) = default;
  HostTensor& operator=(const HostTensor&) = default;

  // Takes the bytes (little-endian elements in `order`). A BOOL byte must be 0 or 1.
  static absl::StatusOr<HostTensor> FromBytes(DType dtype, Shape shape, MemoryOrder order, std::string bytes);

  // Takes memory that `bytes` keeps alive. It must not change while this tensor, or a call with it, exists. Copies only
  // memory that is not aligned for its elements.
  static absl::StatusOr<HostTensor> FromBuffer(DType dtype, Shape shape, MemoryOrder order,
                                               std::shared_ptr<const char> bytes, size_t size_bytes);

  // Takes the vector without a copy (a vector<bool> is packed, and is copied).
  template <typename T>
  static absl::StatusOr<HostTensor> FromVector(std::vector<T> values, Shape shape,
                                               MemoryOrder order = MemoryOrder::kRowMajor);

  // Makes a tensor of rank 0.
  template <typename T>
  static HostTensor Scalar(T value);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  MemoryOrder order() const { return order_; }
  int64_t element_count() const { return element_count_; }
  size_t size_bytes() const { return size_bytes_; }
  const char* bytes() const { return bytes_.get(); }
  const std::shared_ptr<const char>& buffer() const { return bytes_; }

  // Returns the elements in order(), valid while this tensor or a copy exists. INVALID_ARGUMENT if T is not the dtype.
  // Name the span before a loop over it: `for (x : *t.Values<T>())` outlives its StatusOr.
  template <typename T>
  absl::StatusOr<absl::Span<const T>> Values() const;

  // Returns the only element of a tensor of any rank. INVALID_ARGUMENT if there are others or none, or T is not the
  // dtype.
  template <typename T>
  absl::StatusOr<T> Item() const;

  // Returns the tensor with its elements in `order`; copies only if the orders differ.
  HostTensor InOrder(MemoryOrder order) const;

 private:
  static absl::Status DTypeMismatch(DType wanted, DType actual);
  absl::Status NoSingleElement() const;

  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  MemoryOrder order_ = MemoryOrder::kRowMajor;
  int64_t element_count_ = 0;
  size_t size_bytes_ = 0;
  std::shared_ptr<const char> bytes_;
};

template <typename T>
absl::StatusOr<HostTensor> HostTensor::FromVector(std::vector<T> values, Shape shape, MemoryOrder order) {
  if constexpr (std::is_same_v<T, bool>) {
    return FromBytes(DType::kBool, std::move(shape), order, std::string(values.begin(), values.end()));
  } else {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    std::shared_ptr<const char> bytes(owner, reinterpret_cast<const char*>(owner->data()));
    return FromBuffer(DTypeOf<T>::kValue, std::move(shape), order, std::move(bytes), owner->size() * sizeof(T));
  }
}

template <typename T>
HostTensor HostTensor::Scalar(T value) {
  return *FromVector<T>({value}, {});
}

template <typename T>
absl::StatusOr<absl::Span<const T>> HostTensor::Values() const {
  if (DTypeOf<T>::kValue != dtype_) return DTypeMismatch(DTypeOf<T>::kValue, dtype_);
  return absl::Span<const T>(reinterpret_cast<const T*>(bytes_.get()), static_cast<size_t>(element_count_));
}

template <typename T>
absl::StatusOr<T> HostTensor::Item() const {
  const absl::StatusOr<absl::Span<const T>> values = Values<T>();
  if (!values.ok()) return values.status();
  if (values->size() != 1) return NoSingleElement();
  return values->front();
}

}  // namespace tensord::client

#endif  // TENSORD_HOST_TENSOR_H_
