#include "backends/cpu/tridiagonalization.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/gemm_blas.h"
#include "backends/cpu/lapack_steps.h"
#include "backends/cpu/panel_update.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kPanelColumns = kUpdatePanelColumns / 2;  // an update has two terms for each
constexpr int64_t kParts = 4;                               // of a product with a vector, as tasks
constexpr int64_t kShared = 128;                            // rows from which on it is shared

// y += A·x for m×k A of columns that lie `leading` apart, or of its transpose.
template <typename T>
void AddProduct(int64_t m, int64_t k, const T* a, MatrixStrides strides, const T* x, int64_t x_step, T* y) {
  if (m == 0 || k == 0) return;
  BlasMatrixVector(kDTypeOf<T>, m, k, strides, /*conjugates=*/false, /*accumulates=*/true, a, x, x_step, y, 1);
}

// The first column of a part: parts of a triangle are equally large.
int64_t PartBegin(int64_t n, int64_t part) {
  const double left = std::sqrt(1 - static_cast<double>(part) / kParts);
  const int64_t begin = n - static_cast<int64_t>(left * static_cast<double>(n));
  return part == kParts ? n : std::min(n, (begin + 3) / 4 * 4);
}

}  // namespace

template <typename T>
bool Tridiagonalization<T>::Suits(int64_t n) {
  const GemmTiles tiles = GetGemmTiles(kDTypeOf<T>);
  return n >= kPanelColumns && tiles.rows > 0 && tiles.rows <= kUpdateMostTileRows;
}

template <typename T>
Tridiagonalization<T>::Tridiagonalization(int64_t n)
    : n_(n), tiles_(GetGemmTiles(kDTypeOf<T>)), loops_(GetFactorizationLoops<T>()) {
  factors_ = layout_.Add<T>(n * 2 * kPanelColumns);
  line_ = layout_.Add<T>(2 * kPanelColumns);
  parts_ = layout_.Add<T>(kParts * n);
  projected_ = layout_.Add<T>(2 * kPanelColumns);
}

// w = A·v of what follows column `first`.
template <typename T>
void Tridiagonalization<T>::Multiply(int64_t first, const T* a, const T* v, T* parts, T* w, ThreadPool& pool) const {
  const int64_t rows = n_ - first;
  const T* const corner = a + first * (n_ + 1);
  if (rows < kShared) {
    std::fill_n(w, rows, T(0));
    return loops_.add_symmetric(rows, 0, rows, corner, n_, v, w);
  }
  pool.ParallelFor(kParts, [&](int64_t part) {
    const int64_t begin = PartBegin(rows, part);
    T* const into = parts + part * n_;
    std::fill(into + begin, into + rows, T(0));
    loops_.add_symmetric(rows, begin, PartBegin(rows, part + 1), corner, n_, v, into);
  });
  std::copy_n(parts, rows, w);
  for (int64_t part = 1; part < kParts; ++part) {
    for (int64_t i = PartBegin(rows, part); i < rows; ++i) w[i] += parts[part * n_ + i];
  }
}

template <typename T>
void Tridiagonalization<T>::ReduceColumn(int64_t first, int64_t i, T* a, const Work& work, T* diagonal, T* beside,
                                         T* tau, ThreadPool& pool) const {
  const int64_t panel_rows = n_ - first, rows = panel_rows - i, known = 2 * i;
  const MatrixStrides factors{.row_stride = 1, .column_stride = panel_rows};
  const MatrixStrides transposed{.row_stride = panel_rows, .column_stride = 1};
  T* const column = a + (first + i) * (n_ + 1);
  // Line i of W and V, so that they meet the other one's columns.
  for (int64_t k = 0; k < known; ++k) work.projected[k] = -work.factors[(k ^ 1) * panel_rows + i];
  AddProduct(rows, known, work.factors + i, factors, work.projected, 1, column);
  diagonal[first + i] = column[0];
  if (rows == 1) return;

  const int64_t below = rows - 1;
  T& scale = tau[first + i];
  lapack::Larfg(below, column + 1, column + 2, &scale);
  beside[first + i] = column[1];
  T *const v = work.factors + known * panel_rows, *const w = v + panel_rows;
  std::fill_n(v, i + 1, T(0));
  std::fill_n(w, i + 1, T(0));
  T *const v_below = v + i + 1, *const w_below = w + i + 1;
  v_below[0] = 1;
  std::copy_n(column + 2, below - 1, v_below + 1);
  Multiply(first + i + 1, a, v_below, work.parts, w_below, pool);
  std::fill_n(work.line, known, T(0));
  AddProduct(known, below, work.factors + i + 1, transposed, v_below, 1, work.line);
  for (int64_t k = 0; k < known; ++k) work.projected[k] = -work.line[k ^ 1];
  AddProduct(below, known, work.factors + i + 1, factors, work.projected, 1, w_below);
  T product = 0;
  for (int64_t k = 0; k < below; ++k) product += (w_below[k] *= scale) * v_below[k];
  const T part = -scale / 2 * product;
  for (int64_t k = 0; k < below; ++k) w_below[k] += part * v_below[k];
}

// The lower triangle of columns that follow the panel; what is above it in the chunk is computed in vain.
template <typename T>
void Tridiagonalization<T>::Update(int64_t first, int64_t column, int64_t count, const T* factors, T* a) const {
  const int64_t panel_rows = n_ - first, row = column - first;
  alignas(64) T negated[kUpdatePanelColumns * kUpdateChunkColumns];
  for (int64_t j = 0; j < count; j += tiles_.columns) {
    T* const into = negated + j * kUpdatePanelColumns;
    const int64_t width = std::min(tiles_.columns, count - j);
    for (int64_t k = 0; k < kUpdatePanelColumns; ++k) {
      for (int64_t c = 0; c < width; ++c) into[k * tiles_.columns + c] = -factors[(k ^ 1) * panel_rows + row + j + c];
    }
  }
  PanelUpdate<T>{.rows = n_ - column,
                 .columns = count,
                 .terms = kUpdatePanelColumns,
                 .a = factors + row,
                 .a_leading = panel_rows,
                 .b = negated,
                 .c = a + column * (n_ + 1),
                 .c_leading = n_}
      .Run(tiles_);
}

template <typename T>
void Tridiagonalization<T>::Run(T* a, T* diagonal, T* beside, T* tau, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  const Work work{.factors = at(factors_), .line = at(line_), .parts = at(parts_), .projected = at(projected_)};
  for (int64_t first = 0; first < n_; first += kPanelColumns) {
    const int64_t columns = std::min(kPanelColumns, n_ - first);
    for (int64_t i = 0; i < columns; ++i) ReduceColumn(first, i, a, work, diagonal, beside, tau, pool);
    const int64_t next = first + columns;
    if (next == n_) break;
    pool.ParallelForBlocks(n_ - next, kUpdateChunkColumns, [&](int64_t begin, int64_t end) {
      Update(first, next + begin, end - begin, work.factors, a);
    });
  }
}

template class Tridiagonalization<float>;
template class Tridiagonalization<double>;

}  // namespace tensord::cpu
