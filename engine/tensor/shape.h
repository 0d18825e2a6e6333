#ifndef TENSORD_ENGINE_TENSOR_SHAPE_H_
#define TENSORD_ENGINE_TENSOR_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "engine/tensor/dtype.h"

namespace tensord {

// Sizes of a tensor's axes, all known. Tensors are dense and column-major: axis 0 is the fastest.
using Shape = absl::InlinedVector<int64_t, 6>;

// Product of the sizes; nothing if a size is negative or the product (or the product of the non-zero sizes)
// overflows. The latter keeps strides safe for empty tensors too.
std::optional<int64_t> NumElements(absl::Span<const int64_t> shape);

// The same in bytes; nothing if they, or those of the non-zero sizes, are more than 2^56.
std::optional<int64_t> NumBytes(DType dtype, absl::Span<const int64_t> shape);

// Elements between neighbours along each axis, column-major. The shape must have passed NumElements.
Shape ColumnMajorStrides(absl::Span<const int64_t> shape);

// "[2,3]".
std::string ToString(absl::Span<const int64_t> shape);

// dtype and sizes of a value when a program runs.
struct ConcreteType {
  DType dtype = DType::kInvalid;
  Shape shape;

  // Both need a shape that passed NumElements and NumBytes.
  int64_t num_elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  int64_t num_bytes() const { return num_elements() * SizeOf(dtype); }
  int rank() const { return static_cast<int>(shape.size()); }
  friend bool operator==(const ConcreteType&, const ConcreteType&) = default;
};

// "f32[2,3]".
std::string ToString(const ConcreteType& type);

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_SHAPE_H_
