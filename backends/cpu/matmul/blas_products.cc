#include "backends/cpu/matmul/blas_products.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>

namespace tensord::cpu {
namespace {

// How BLAS is told of a rows×columns matrix: as it lies in columns, or as the transpose of one that does.
struct BlasMatrix {
  CBLAS_TRANSPOSE transpose;
  blasint leading;
};

BlasMatrix Describe(int64_t rows, int64_t columns, MatrixStrides strides, bool conjugates) {
  // Along an axis of one element the stride says nothing.
  if (rows == 1 || strides.row_stride == 1) {
    return {conjugates ? CblasConjNoTrans : CblasNoTrans,
            static_cast<blasint>(columns == 1 ? std::max<int64_t>(rows, 1) : strides.column_stride)};
  }
  return {conjugates ? CblasConjTrans : CblasTrans, static_cast<blasint>(strides.row_stride)};
}

template <typename Real>
void ConjugateOne(void* number) {
  Real* const parts = static_cast<Real*>(number);
  parts[1] = -parts[1];
}

constexpr float kOneC64[2] = {1, 0};
constexpr float kZeroC64[2] = {0, 0};
constexpr double kOneC128[2] = {1, 0};
constexpr double kZeroC128[2] = {0, 0};

}  // namespace

void BlasMatrixMatrix(DType dtype, const MatrixProduct& p, const void* a, const void* b, void* c) {
  const BlasMatrix l = Describe(p.m, p.k, p.a, p.conjugates_a);
  const BlasMatrix r = Describe(p.k, p.n, p.b, p.conjugates_b);
  const blasint m = static_cast<blasint>(p.m);
  const blasint n = static_cast<blasint>(p.n);
  const blasint k = static_cast<blasint>(p.k);
  const blasint ldc = static_cast<blasint>(std::max(p.c_column_stride, p.m));
  const bool accumulates = p.accumulates;
  switch (dtype) {
    case DType::kF32:
      cblas_sgemm(CblasColMajor, l.transpose, r.transpose, m, n, k, 1, static_cast<const float*>(a), l.leading,
                  static_cast<const float*>(b), r.leading, accumulates, static_cast<float*>(c), ldc);
      return;
    case DType::kF64:
      cblas_dgemm(CblasColMajor, l.transpose, r.transpose, m, n, k, 1, static_cast<const double*>(a), l.leading,
                  static_cast<const double*>(b), r.leading, accumulates, static_cast<double*>(c), ldc);
      return;
    case DType::kC64:
      cblas_cgemm(CblasColMajor, l.transpose, r.transpose, m, n, k, kOneC64, a, l.leading, b, r.leading,
                  accumulates ? kOneC64 : kZeroC64, c, ldc);
      return;
    default:
      cblas_zgemm(CblasColMajor, l.transpose, r.transpose, m, n, k, kOneC128, a, l.leading, b, r.leading,
                  accumulates ? kOneC128 : kZeroC128, c, ldc);
  }
}

void BlasMatrixVector(DType dtype, int64_t m, int64_t k, MatrixStrides strides, bool conjugates, bool accumulates,
                      const void* a, const void* x, int64_t x_step, void* y, int64_t y_step) {
  const BlasMatrix l = Describe(m, k, strides, conjugates);
  // BLAS counts rows and columns of the matrix as it lies.
  const bool as_it_lies = l.transpose == CblasNoTrans || l.transpose == CblasConjNoTrans;
  const blasint rows = static_cast<blasint>(as_it_lies ? m : k);
  const blasint columns = static_cast<blasint>(as_it_lies ? k : m);
  const blasint incx = static_cast<blasint>(x_step);
  const blasint incy = static_cast<blasint>(y_step);
  const int64_t bytes = SizeOf(dtype);
  // Some versions scale the old y by beta = 0, which keeps a NaN.
  for (int64_t i = 0; i < m && !accumulates; ++i)
    std::memset(static_cast<char*>(y) + i * y_step * bytes, 0, static_cast<size_t>(bytes));
  switch (dtype) {
    case DType::kF32:
      cblas_sgemv(CblasColMajor, l.transpose, rows, columns, 1, static_cast<const float*>(a), l.leading,
                  static_cast<const float*>(x), incx, accumulates, static_cast<float*>(y), incy);
      return;
    case DType::kF64:
      cblas_dgemv(CblasColMajor, l.transpose, rows, columns, 1, static_cast<const double*>(a), l.leading,
                  static_cast<const double*>(x), incx, accumulates, static_cast<double*>(y), incy);
      return;
    case DType::kC64:
      cblas_cgemv(CblasColMajor, l.transpose, rows, columns, kOneC64, a, l.leading, x, incx,
                  accumulates ? kOneC64 : kZeroC64, y, incy);
      return;
    default:
      cblas_zgemv(CblasColMajor, l.transpose, rows, columns, kOneC128, a, l.leading, x, incx,
                  accumulates ? kOneC128 : kZeroC128, y, incy);
  }
}

void BlasDot(DType dtype, int64_t k, const void* x, int64_t x_step, bool conjugates_x, const void* y, int64_t y_step,
             bool conjugates_y, void* result) {
  if (conjugates_x != conjugates_y && kComplexes.Contains(dtype)) {
    // BLAS conjugates its first vector.
    if (conjugates_y) return BlasDot(dtype, k, y, y_step, true, x, x_step, false, result);
    const auto dot = dtype == DType::kC64 ? &cblas_cdotc_sub : &cblas_zdotc_sub;
    return dot(static_cast<blasint>(k), x, static_cast<blasint>(x_step), y, static_cast<blasint>(y_step), result);
  }
  const blasint count = static_cast<blasint>(k);
  const blasint incx = static_cast<blasint>(x_step);
  const blasint incy = static_cast<blasint>(y_step);
  switch (dtype) {
    case DType::kF32:
      *static_cast<float*>(result) =
          cblas_sdot(count, static_cast<const float*>(x), incx, static_cast<const float*>(y), incy);
      return;
    case DType::kF64:
      *static_cast<double*>(result) =
          cblas_ddot(count, static_cast<const double*>(x), incx, static_cast<const double*>(y), incy);
      return;
    case DType::kC64:
      cblas_cdotu_sub(count, x, incx, y, incy, result);
      if (conjugates_x) ConjugateOne<float>(result);
      return;
    default:
      cblas_zdotu_sub(count, x, incx, y, incy, result);
      if (conjugates_x) ConjugateOne<double>(result);
  }
}

}  // namespace tensord::cpu
