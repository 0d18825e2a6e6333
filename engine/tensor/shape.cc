#include "engine/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/checked_math.h"

namespace tensord {

std::optional<int64_t> NumElements(absl::Span<const int64_t> shape) {
  int64_t non_zero = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      empty = true;
      continue;
    }
    const std::optional<int64_t> product = CheckedMul(non_zero, size);
    if (!product.has_value()) return std::nullopt;
    non_zero = *product;
  }
  return empty ? 0 : non_zero;
}

std::optional<int64_t> NumBytes(DType dtype, absl::Span<const int64_t> shape) {
  const std::optional<int64_t> elements = NumElements(shape);
  if (!elements.has_value()) return std::nullopt;
  return CheckedMul(*elements, SizeOf(dtype));
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
