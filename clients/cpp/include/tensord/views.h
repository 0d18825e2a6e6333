// Views of a tensor's elements as types of the standard library, and tensors copied from memory that somebody else
// owns.
#ifndef TENSORD_VIEWS_H_
#define TENSORD_VIEWS_H_

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <version>

#if defined(__cpp_lib_mdspan)
#include <array>
#include <mdspan>
#endif

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensord/host_tensor.h"

namespace tensord::client {

// Returns the elements in the tensor's order, valid while the tensor or a copy of it exists. INVALID_ARGUMENT if T is
// not the dtype.
template <typename T>
absl::StatusOr<std::span<const T>> AsSpan(const HostTensor& tensor) {
  const absl::StatusOr<absl::Span<const T>> values = tensor.Values<T>();
  if (!values.ok()) return values.status();
  return std::span<const T>(values->data(), values->size());
}

// Copies elements into a tensor; `values` lie in `order` without gaps. INVALID_ARGUMENT unless there are as many as the
// shape says.
template <typename T>
absl::StatusOr<HostTensor> CopyOf(std::span<const T> values, Shape shape, MemoryOrder order = MemoryOrder::kRowMajor) {
  static_assert(std::is_trivially_copyable_v<T>);
  return HostTensor::FromBytes(DTypeOf<T>::kValue, std::move(shape), order,
                               std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
}

// Copies the elements at `values`, as many as the shape says. INVALID_ARGUMENT if the shape has none, or null is given
// for a shape that has elements.
template <typename T>
absl::StatusOr<HostTensor> CopyOf(const T* values, Shape shape, MemoryOrder order = MemoryOrder::kRowMajor) {
  const absl::StatusOr<int64_t> count = ElementCount(shape);
  if (!count.ok()) return count.status();
  if (values == nullptr && *count > 0) {
    return absl::InvalidArgumentError("null is given for elements of shape " + ShapeToString(shape));
  }
  return CopyOf(std::span<const T>(values, static_cast<size_t>(*count)), std::move(shape), order);
}

#if defined(__cpp_lib_mdspan)
// Returns the elements by their indices, in either order of the tensor. Valid while the tensor or a copy of it exists.
// INVALID_ARGUMENT if T is not the dtype or kRank is not the rank.
template <typename T, size_t kRank>
absl::StatusOr<std::mdspan<const T, std::dextents<int64_t, kRank>, std::layout_stride>> AsMdspan(
    const HostTensor& tensor) {
  const absl::StatusOr<absl::Span<const T>> values = tensor.Values<T>();
  if (!values.ok()) return values.status();
  if (tensor.shape().size() != kRank) {
    return absl::InvalidArgumentError("a view of " + std::to_string(kRank) + " axes was asked for, the shape is " +
                                      ShapeToString(tensor.shape()));
  }
  std::array<int64_t, kRank> sizes = {}, strides = {};
  int64_t stride = 1;
  for (size_t i = 0; i < kRank; ++i) {
    const size_t axis = tensor.order() == MemoryOrder::kRowMajor ? kRank - 1 - i : i;
    sizes[axis] = tensor.shape()[axis];
    strides[axis] = stride;
    stride *= sizes[axis] > 0 ? sizes[axis] : 1;
  }
  const std::layout_stride::mapping<std::dextents<int64_t, kRank>> mapping(std::dextents<int64_t, kRank>(sizes),
                                                                           strides);
  return std::mdspan<const T, std::dextents<int64_t, kRank>, std::layout_stride>(values->data(), mapping);
}
#endif

}  // namespace tensord::client

#endif  // TENSORD_VIEWS_H_
