#include "engine/tensor/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/checked_math.h"

namespace tensord {

namespace {

// Beyond any memory, and so far below 2^63 that sizes and offsets do not overflow in kernels' additions.
constexpr int64_t kMaxBytes = int64_t{1} << 56;

std::optional<int64_t> NonZeroProduct(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) continue;
    const std::optional<int64_t> next = CheckedMul(product, size);
    if (!next.has_value()) return std::nullopt;
    product = *next;
  }
  return product;
}

bool IsEmpty(absl::Span<const int64_t> shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

}  // namespace

std::optional<int64_t> NumElements(absl::Span<const int64_t> shape) {
  const std::optional<int64_t> product = NonZeroProduct(shape);
  return product.has_value() && IsEmpty(shape) ? 0 : product;
}

std::optional<int64_t> NumBytes(DType dtype, absl::Span<const int64_t> shape) {
  const std::optional<int64_t> product = NonZeroProduct(shape);
  if (!product.has_value()) return std::nullopt;
  const std::optional<int64_t> bytes = CheckedMul(*product, SizeOf(dtype));
  if (!bytes.has_value() || *bytes > kMaxBytes) return std::nullopt;
  return IsEmpty(shape) ? 0 : *bytes;
}

Shape ColumnMajorStrides(absl::Span<const int64_t> shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    if (shape[i] > 0) stride *= shape[i];
  }
  return strides;
}

std::string ToString(absl::Span<const int64_t> shape) { return absl::StrCat("[", absl::StrJoin(shape, ","), "]"); }

std::string ToString(const ConcreteType& type) { return absl::StrCat(Name(type.dtype), ToString(type.shape)); }

}  // namespace tensord
