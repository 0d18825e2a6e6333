#ifndef TENSORD_BACKENDS_CPU_MATMUL_BLAS_PRODUCTS_H_
#define TENSORD_BACKENDS_CPU_MATMUL_BLAS_PRODUCTS_H_

#include <cstdint>

#include "backends/cpu/matmul/loops.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {

// One call of BLAS each, for F32, F64 and complex numbers; sizes and strides fit 32 bits. A matrix has unit stride
// along one of its axes, a vector any positive stride.

// c = a·b, or c += a·b, of the conjugates where the product says so.
void BlasMatrixMatrix(DType dtype, const MatrixProduct& product, const void* a, const void* b, void* c);
// y = a·x, or y += a·x, for an m×k matrix a, or its conjugate.
void BlasMatrixVector(DType dtype, int64_t m, int64_t k, MatrixStrides strides, bool conjugates, bool accumulates,
                      const void* a, const void* x, int64_t x_step, void* y, int64_t y_step);
// *result = sum of x[i]·y[i], of which either may be conjugated.
void BlasDot(DType dtype, int64_t k, const void* x, int64_t x_step, bool conjugates_x, const void* y, int64_t y_step,
             bool conjugates_y, void* result);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_MATMUL_BLAS_PRODUCTS_H_
