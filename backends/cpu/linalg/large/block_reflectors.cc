#include "backends/cpu/linalg/large/block_reflectors.h"

#include <algorithm>
#include <complex>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/number_parts.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kReflectorBlock = 64;  // parts of reflectors
constexpr int64_t kLeastLength = 96;     // below it LAPACK's calls cost less

// Return the dtype of a number's parts, and how many parts it has.
DType PartOf(DType dtype) {
  if (!kComplexes.Contains(dtype)) return dtype;
  return dtype == DType::kC64 ? DType::kF32 : DType::kF64;
}
int64_t PartsOf(DType dtype) { return kComplexes.Contains(dtype) ? 2 : 1; }

// V of a block as a dense matrix: zeros above its diagonal of ones.
template <typename T>
void CopyDense(const T* v, int64_t leading, bool in_rows, int64_t length, int64_t count, T* dense) {
  for (int64_t j = 0; j < count; ++j) {
    T* const column = dense + j * length * kNumberParts<T>;
    std::fill_n(column, j, T(0));
    column[j] = 1;
    if (in_rows) {
      for (int64_t i = j + 1; i < length; ++i) column[i] = Conjugate(v[i * leading + j]);
    } else {
      std::copy(v + j * leading + j + 1, v + j * leading + length, column + j + 1);
    }
    AddColumnTimesI(column, length);
  }
}

// -T, or its conjugate transpose, of the products of the reflectors with each other.
template <typename T>
void MakeTriangle(const T* gram, const T* tau, int64_t count, bool transposed, T* triangle) {
  const int64_t step = count * kNumberParts<T>;
  std::fill_n(triangle, count * step, T(0));
  for (int64_t j = 0; j < count; ++j) {
    // T's column j above the diagonal is -tau_j times T's first j columns times gram's column j; `triangle` holds -T.
    for (int64_t i = 0; i < j; ++i) {
      T sum = 0;
      for (int64_t k = i; k < j; ++k) sum += Multiply(triangle[i + k * step], gram[j * count + k]);
      triangle[i + j * step] = Multiply(-tau[j], sum);
    }
    triangle[j + j * step] = -tau[j];
  }
  if (transposed) {
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i <= j; ++i) {
        const T entry = triangle[i + j * step];
        triangle[i + j * step] = 0;
        triangle[j + i * step] = Conjugate(entry);
      }
    }
  }
  for (int64_t j = 0; j < count; ++j) AddColumnTimesI(triangle + j * step, count);
}

}  // namespace

bool BlockReflectors::Suits(DType dtype, int64_t length, int64_t count) {
  return GetGemmTiles(PartOf(dtype)).rows > 0 && length >= kLeastLength && count >= kReflectorBlock / PartsOf(dtype);
}

BlockReflectors::BlockReflectors(DType dtype, const Shape& shape) : shape_(shape) {
  const int64_t parts = PartsOf(dtype);
  int64_t product_bytes = 0;
  for (int64_t first = 0; first < shape.count; first += kReflectorBlock / parts) {
    blocks_.push_back(MakeBlock(dtype, first));
    const Block& block = blocks_.back();
    for (const PlainProduct* product : {&block.gram, &block.project, &block.turn, &block.add}) {
      product_bytes = std::max(product_bytes, product->scratch_bytes());
    }
  }
  ScratchLayout layout;
  const int64_t bytes = SizeOf(dtype);
  const int64_t most = std::min(kReflectorBlock / parts, shape.count);
  dense_place_ = layout.Add<char>(shape.length * most * parts * bytes);
  gram_place_ = layout.Add<char>(most * most * bytes);
  triangle_place_ = layout.Add<char>(most * most * parts * bytes);
  projected_place_ = layout.Add<char>(most * shape.others * bytes);
  turned_place_ = layout.Add<char>(most * shape.others * bytes);
  products_place_ = layout.Add<char>(product_bytes);
  scratch_bytes_ = layout.bytes();
}

BlockReflectors::Block BlockReflectors::MakeBlock(DType dtype, int64_t first) const {
  const int64_t parts = PartsOf(dtype);
  const DType part = PartOf(dtype);
  Block block{.first = first, .count = std::min(kReflectorBlock / parts, shape_.count - first)};
  const int64_t length = parts * (shape_.length - first), count = parts * block.count;
  const MatrixStrides dense{.row_stride = 1, .column_stride = length};
  const MatrixStrides dense_transposed{.row_stride = length, .column_stride = 1};
  const MatrixStrides without_i{.row_stride = 1, .column_stride = parts * length};
  const MatrixStrides triangle{.row_stride = 1, .column_stride = count};
  const MatrixStrides c{.row_stride = 1, .column_stride = parts * shape_.c_leading};
  block.gram = PlainProduct(
      part,
      {.m = count, .n = block.count, .k = length, .a = dense_transposed, .b = without_i, .c_column_stride = count});
  if (shape_.side == Side::kLeft) {
    // Before the block the identity's first columns have zeros where the block works.
    const int64_t others = shape_.starts_as_identity ? shape_.others - first : shape_.others;
    const MatrixStrides projected{.row_stride = 1, .column_stride = count};
    block.project = PlainProduct(
        part, {.m = count, .n = others, .k = length, .a = dense_transposed, .b = c, .c_column_stride = count});
    block.turn = PlainProduct(
        part, {.m = count, .n = others, .k = count, .a = triangle, .b = projected, .c_column_stride = count});
    block.add = PlainProduct(
        part, {.m = length, .n = others, .k = count, .a = dense, .b = projected, .c_column_stride = c.column_stride});
    return block;
  }
  const MatrixStrides projected{.row_stride = 1, .column_stride = shape_.others};
  block.project = PlainProduct(
      dtype, {.m = shape_.others, .n = count, .k = length, .a = c, .b = dense, .c_column_stride = shape_.others});
  block.turn = PlainProduct(
      dtype,
      {.m = shape_.others, .n = count, .k = count, .a = projected, .b = triangle, .c_column_stride = shape_.others});
  block.add = PlainProduct(dtype, {.m = shape_.others,
                                   .n = length,
                                   .k = count,
                                   .a = projected,
                                   .b = dense_transposed,
                                   .c_column_stride = shape_.c_leading});
  return block;
}

template <typename T>
void BlockReflectors::Apply(const T* v, const T* tau, T* c, char* scratch, ThreadPool& pool) const {
  T* const dense = reinterpret_cast<T*>(scratch + dense_place_);
  T* const gram = reinterpret_cast<T*>(scratch + gram_place_);
  T* const triangle = reinterpret_cast<T*>(scratch + triangle_place_);
  T* const projected = reinterpret_cast<T*>(scratch + projected_place_);
  T* const turned = reinterpret_cast<T*>(scratch + turned_place_);
  char* const workspace = scratch + products_place_;
  const bool is_left = shape_.side == Side::kLeft;
  const auto apply = [&](const Block& block) {
    const int64_t at = block.first;
    CopyDense(v + at * (shape_.v_leading + 1), shape_.v_leading, shape_.stored_in_rows, shape_.length - at, block.count,
              dense);
    if (shape_.lies_in_v) {
      for (int64_t j = at; j < at + block.count; ++j) {
        std::fill_n(c + j * shape_.c_leading, shape_.length, T(0));
        c[j * (shape_.c_leading + 1)] = 1;
      }
    }
    block.gram.Run(dense, dense, gram, workspace, /*accumulates=*/false, pool);
    MakeTriangle(gram, tau + at, block.count, shape_.transposes || !is_left, triangle);
    T* const part =
        is_left ? c + at + (shape_.starts_as_identity ? at * shape_.c_leading : 0) : c + at * shape_.c_leading;
    if (is_left) {
      block.project.Run(dense, part, projected, workspace, false, pool);
      block.turn.Run(triangle, projected, turned, workspace, false, pool);
      block.add.Run(dense, turned, part, workspace, true, pool);
    } else {
      block.project.Run(part, dense, projected, workspace, false, pool);
      block.turn.Run(projected, triangle, turned, workspace, false, pool);
      block.add.Run(turned, dense, part, workspace, true, pool);
    }
  };
  if (shape_.transposes) {
    for (const Block& block : blocks_) apply(block);
  } else {
    for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) apply(*block);
  }
}

template void BlockReflectors::Apply(const float*, const float*, float*, char*, ThreadPool&) const;
template void BlockReflectors::Apply(const double*, const double*, double*, char*, ThreadPool&) const;
template void BlockReflectors::Apply(const std::complex<float>*, const std::complex<float>*, std::complex<float>*,
                                     char*, ThreadPool&) const;
template void BlockReflectors::Apply(const std::complex<double>*, const std::complex<double>*, std::complex<double>*,
                                     char*, ThreadPool&) const;

}  // namespace tensord::cpu
