#ifndef TENSORD_BACKENDS_CPU_MATMUL_LOOPS_H_
#define TENSORD_BACKENDS_CPU_MATMUL_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// The layout of a matrix: element (i, j) is i * row_stride + j * column_stride elements from the first.
struct MatrixStrides {
  int64_t row_stride = 1;
  int64_t column_stride = 1;
};

// Sizes and layouts of one product of an m×k and a k×n matrix; the m×n result has unit row stride. Matrices of complex
// numbers may be conjugated as they are read, if the product says so (Gemm::CanConjugateLhs).
struct MatrixProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  MatrixStrides a;
  MatrixStrides b;
  int64_t c_column_stride = 0;
  bool conjugates_a = false;
  bool conjugates_b = false;
  bool accumulates = false;  // c += a·b
};

// c = a·b without reading c, or c += a·b where the product accumulates.
using MatrixProductFunction = void (*)(const MatrixProduct& product, const void* a, const void* b, void* c);

// A product and how many more like it there are, each so many elements further.
struct ProductCopies {
  int64_t count = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  int64_t c_step = 0;
};
using ProductCopiesFunction = void (*)(const MatrixProduct& product, const ProductCopies& copies, const void* a,
                                       const void* b, void* c);

// Products that BLAS does not have or is slow at, for the machine's best instruction set. A null pointer: not for that
// dtype.
struct GemmLoops {
  ProductCopiesFunction tiny = nullptr;   // m <= kMaxTinyRows, k <= kMaxTinyTerms; numbers
  MatrixProductFunction outer = nullptr;  // k = 1, a.row_stride = 1; reals and complex numbers
  // Takes a.row_stride = 1 or m = 1; integers (which wrap), BOOL (or of ands), and reals and complex numbers, if it
  // streams a tall a through a few columns faster than BLAS.
  MatrixProductFunction general = nullptr;
};

// Loops make such products a column at a time, its sums in registers: more rows or terms are worth packing.
inline constexpr int64_t kMaxTinyRows = 8;
inline constexpr int64_t kMaxTinyTerms = 16;

// BOOL, integers, F32, F64 and complex numbers.
GemmLoops GetGemmLoops(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_LOOPS_H_
