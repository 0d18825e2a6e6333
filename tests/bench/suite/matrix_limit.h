#ifndef TENSORD_TESTS_BENCH_SUITE_MATRIX_LIMIT_H_
#define TENSORD_TESTS_BENCH_SUITE_MATRIX_LIMIT_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord {

// `batch` products of an m×k and a k×n matrix.
struct MatrixSizes {
  DType dtype = DType::kF64;
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

// Multiplications and additions of real numbers.
double Flops(const MatrixSizes& sizes);

// Tells whether OpenBLAS is the right comparison: F32, F64 or complex, and no size so small that a matrix is a vector
// or a few.
bool IsForBlas(const MatrixSizes& sizes);
// Returns the milliseconds that OpenBLAS itself takes for them, on matrices in its favourite layout, cut into one piece
// a thread along the axis that suits best; the best of a few rounds.
double BlasMs(const MatrixSizes& sizes, int threads);

}  // namespace tensord

#endif  // TENSORD_TESTS_BENCH_SUITE_MATRIX_LIMIT_H_
