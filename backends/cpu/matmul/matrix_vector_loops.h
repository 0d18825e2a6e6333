#ifndef TENSORD_BACKENDS_CPU_MATMUL_MATRIX_VECTOR_LOOPS_H_
#define TENSORD_BACKENDS_CPU_MATMUL_MATRIX_VECTOR_LOOPS_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// y = A·x, or y += A·x: A has `outputs` rows of k terms, x k elements and y `outputs`, both dense; `step` elements lie
// between the columns of A, or between its rows, whichever are not dense themselves.
using MatrixVectorFunction = void (*)(int64_t outputs, int64_t k, const void* a, int64_t step, const void* x, void* y,
                                      bool accumulates);

// Products that read a matrix once and in its order, at the rate of memory; BLAS reads many columns side by side. For
// the machine's best instruction set; null pointers for dtypes without such loops.
struct MatrixVectorLoops {
  // Columns are dense, of at most max_outputs: y stays in registers.
  MatrixVectorFunction by_columns = nullptr;
  int64_t max_outputs = 0;
  // Rows are dense.
  MatrixVectorFunction by_rows = nullptr;
};

// F32 and F64.
MatrixVectorLoops GetMatrixVectorLoops(DType dtype);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_MATRIX_VECTOR_LOOPS_H_
