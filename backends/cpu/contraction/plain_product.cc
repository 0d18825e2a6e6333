#include "backends/cpu/contraction/plain_product.h"

#include "backends/cpu/matmul/blas_products.h"

namespace tensord::cpu {
namespace {

DotSpace SpaceOf(const MatrixProduct& p) {
  DotSpace space;
  space.roles[kRows] = {{.size = p.m, .strides = {p.a.row_stride, 0, 1}}};
  space.roles[kColumns] = {{.size = p.n, .strides = {0, p.b.column_stride, p.c_column_stride}}};
  space.roles[kSummed] = {{.size = p.k, .strides = {p.a.column_stride, p.b.row_stride, 0}}};
  return space;
}

}  // namespace

PlainProduct::PlainProduct(DType dtype, const MatrixProduct& product)
    : dtype_(dtype), product_(product), tiled_(TiledGemm::Plan(SpaceOf(product), dtype)) {}

void PlainProduct::Run(const void* a, const void* b, void* c, char* scratch, bool accumulates, ThreadPool& pool) const {
  if (is_tiled()) {
    tiled_->Run(static_cast<const char*>(a), static_cast<const char*>(b), static_cast<char*>(c), scratch, accumulates,
                pool);
    return;
  }
  if (product_.m == 0 || product_.n == 0 || product_.k == 0) return;
  MatrixProduct product = product_;
  product.accumulates = accumulates;
  BlasMatrixMatrix(dtype_, product, a, b, c);
}

}  // namespace tensord::cpu
