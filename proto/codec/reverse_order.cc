#include "proto/codec/reverse_order.h"

#include <algorithm>
#include <cstring>

#include "engine/tensor/shape.h"

namespace tensord::codec {
namespace {

// Elements along each side of a block: both sides of a block of the widest element fit into the first-level cache.
constexpr int64_t kBlock = 32;

struct Element16 {
  uint64_t words[2];
};

// to[j + i * to_stride] = from[i + j * from_stride] for i < rows, j < columns.
template <typename T>
void TransposeMatrix(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
                     int64_t columns) {
  constexpr int64_t kSize = sizeof(T);
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(i0 + kBlock, rows);
    for (int64_t j0 = 0; j0 < columns; j0 += kBlock) {
      const int64_t j1 = std::min(j0 + kBlock, columns);
      for (int64_t i = i0; i < i1; ++i) {
        const char* source = from + (i + j0 * from_stride) * kSize;
        char* target = to + (j0 + i * to_stride) * kSize;
        for (int64_t j = j0; j < j1; ++j) {
          T element;  // copied by bytes: the wire's buffer is not aligned for it
          std::memcpy(&element, source, sizeof(T));
          std::memcpy(target, &element, sizeof(T));
          source += from_stride * kSize;
          target += kSize;
        }
      }
    }
  }
}

// Transposes the first with the last axis once for every index of the axes between them.
template <typename T>
void Reverse(const Shape& shape, const char* from, char* to) {
  const size_t last = shape.size() - 1;
  const Shape from_strides = ColumnMajorStrides(shape);
  Shape to_strides = ColumnMajorStrides(Shape(shape.rbegin(), shape.rend()));
  std::reverse(to_strides.begin(), to_strides.end());  // by the axes of `shape`
  Shape index(shape.size());
  while (true) {
    int64_t source = 0, target = 0;
    for (size_t k = 1; k < last; ++k) {
      source += index[k] * from_strides[k];
      target += index[k] * to_strides[k];
    }
    TransposeMatrix<T>(from + source * static_cast<int64_t>(sizeof(T)), from_strides[last],
                       to + target * static_cast<int64_t>(sizeof(T)), to_strides[0], shape[0], shape[last]);
    size_t k = 1;
    while (k < last && ++index[k] == shape[k]) index[k++] = 0;
    if (k >= last) return;
  }
}

}  // namespace

void ReverseOrder(absl::Span<const int64_t> shape, int64_t element_size, const char* from, char* to) {
  Shape axes;  // those that matter
  int64_t elements = 1;
  for (int64_t size : shape) {
    elements *= size;
    if (size != 1) axes.push_back(size);
  }
  if (elements == 0) return;
  if (axes.size() < 2) {
    std::memcpy(to, from, static_cast<size_t>(elements * element_size));
    return;
  }
  switch (element_size) {
    case 1:
      return Reverse<uint8_t>(axes, from, to);
    case 2:
      return Reverse<uint16_t>(axes, from, to);
    case 4:
      return Reverse<uint32_t>(axes, from, to);
    case 8:
      return Reverse<uint64_t>(axes, from, to);
    default:
      return Reverse<Element16>(axes, from, to);
  }
}

void ReverseOrder(const ConcreteType& type, Order order, const char* from, char* to) {
  Shape shape = type.shape;
  // A row-major tensor is a column-major one of reversed shape.
  if (order == Order::kRowMajor) std::reverse(shape.begin(), shape.end());
  ReverseOrder(shape, SizeOf(type.dtype), from, to);
}

}  // namespace tensord::codec
