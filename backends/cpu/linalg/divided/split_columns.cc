#include "backends/cpu/linalg/divided/split_columns.h"

#include <algorithm>

#include "backends/cpu/contraction/plain_product.h"
#include "backends/cpu/matmul/blas_products.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kPieceRows = 512;  // of a product by BLAS: some milliseconds between two looks at the deadline
constexpr int64_t kMostProductBytes = int64_t{8} << 20;  // as a session's workspace (kMaxWorkspaceBytes)

template <typename R>
MatrixProduct RowsOfProduct(int64_t rows, int64_t terms, const typename SplitColumns<R>::Product& product) {
  return {.m = rows,
          .n = product.columns,
          .k = terms,
          .a = {.row_stride = 1, .column_stride = rows},
          .b = {.row_stride = 1, .column_stride = product.factor_leading},
          .c_column_stride = product.leading};
}

// Clears the rows if no column reaches them, since there is nothing to add up.
template <typename R>
bool ClearWithoutTerms(int64_t rows, int64_t terms, R* into, const typename SplitColumns<R>::Product& product) {
  for (int64_t j = 0; terms == 0 && j < product.columns; ++j) std::fill_n(into + j * product.leading, rows, R(0));
  return terms == 0;
}

// In pieces, between which it asks whether the work is wanted.
template <typename R>
void MultiplyByBlas(const MatrixProduct& whole, const R* a, const R* factor, R* into) {
  MatrixProduct piece = whole;
  for (int64_t first = 0; first < whole.m && !StopRequested(); first += kPieceRows) {
    piece.m = std::min(kPieceRows, whole.m - first);
    BlasMatrixMatrix(kDTypeOf<R>, piece, a + first, factor, into + first);
  }
}

}  // namespace

template <typename R>
void SplitColumns<R>::Take(int64_t index, const R* whole_top, const R* whole_bottom) const {
  if (index < only_top + both) std::copy_n(whole_top, top_rows, top + index * top_rows);
  if (index >= only_top) std::copy_n(whole_bottom, bottom_rows, bottom + (index - only_top) * bottom_rows);
}

template <typename R>
void SplitColumns<R>::Multiply(const Product& product) const {
  const auto multiply = [&](int64_t rows, int64_t terms, const R* a, const R* factor, R* into) {
    if (ClearWithoutTerms<R>(rows, terms, into, product)) return;
    MultiplyByBlas(RowsOfProduct<R>(rows, terms, product), a, factor, into);
  };
  multiply(top_rows, only_top + both, top, product.factor, product.top);
  multiply(bottom_rows, both + only_bottom, bottom, product.factor + only_top, product.bottom);
}

template <typename R>
int64_t SplitColumns<R>::ProductBytes(int64_t n, int64_t columns) {
  const Product product{
      .factor = nullptr, .factor_leading = n, .columns = columns, .top = nullptr, .bottom = nullptr, .leading = n};
  const PlainProduct planned(kDTypeOf<R>, RowsOfProduct<R>(n / 2 + 1, n, product));
  return std::min(kMostProductBytes, planned.scratch_bytes());
}

template <typename R>
void SplitColumns<R>::MultiplyOnPool(const Product& product, char* scratch, int64_t scratch_bytes,
                                     ThreadPool& pool) const {
  const auto multiply = [&](int64_t rows, int64_t terms, const R* a, const R* factor, R* into) {
    if (ClearWithoutTerms<R>(rows, terms, into, product)) return;
    const MatrixProduct sizes = RowsOfProduct<R>(rows, terms, product);
    const PlainProduct planned(kDTypeOf<R>, sizes);
    if (!planned.is_tiled() || planned.scratch_bytes() > scratch_bytes) return MultiplyByBlas(sizes, a, factor, into);
    planned.Run(a, factor, into, scratch, /*accumulates=*/false, pool);
  };
  multiply(top_rows, only_top + both, top, product.factor, product.top);
  multiply(bottom_rows, both + only_bottom, bottom, product.factor + only_top, product.bottom);
}

template struct SplitColumns<float>;
template struct SplitColumns<double>;

}  // namespace tensord::cpu
