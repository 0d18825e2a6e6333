#include "backends/cpu/linalg/large/tridiagonalization.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/linalg/lapack/number_parts.h"
#include "backends/cpu/linalg/lapack/steps.h"
#include "backends/cpu/linalg/large/panel_update.h"
#include "backends/cpu/matmul/blas_products.h"
#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kTridiagonalParts = 4;  // of a product with a vector, as tasks

// An update has two terms for each, of as many parts as the numbers have.
template <typename T>
constexpr int64_t kTridiagonalPanelColumns = kUpdatePanelColumns / 2 / kNumberParts<T>;
// Rows from which on a product with a vector is shared.
template <typename T>
constexpr int64_t kSharedTridiagonal = 128 / kNumberParts<T>;

// y += A·x for m×k A of columns that lie `leading` apart.
template <typename T>
void AddProduct(int64_t m, int64_t k, const T* a, int64_t leading, const T* x, T* y) {
  if (m == 0 || k == 0) return;
  BlasMatrixVector(kDTypeOf<T>, m, k, {.row_stride = 1, .column_stride = leading}, /*conjugates=*/false,
                   /*accumulates=*/true, a, x, 1, y, 1);
}

// y = A^H·x of such an A.
template <typename T>
void Project(int64_t m, int64_t k, const T* a, int64_t leading, const T* x, T* y) {
  if (m == 0 || k == 0) return;
  BlasMatrixVector(kDTypeOf<T>, k, m, {.row_stride = leading, .column_stride = 1}, lapack::kIsComplex<T>,
                   /*accumulates=*/false, a, x, 1, y, 1);
}

// Returns the first column of a part: parts of a triangle are equally large.
int64_t PartBegin(int64_t n, int64_t part) {
  const double left = std::sqrt(1 - static_cast<double>(part) / kTridiagonalParts);
  const int64_t begin = n - static_cast<int64_t>(left * static_cast<double>(n));
  return part == kTridiagonalParts ? n : std::min(n, (begin + 3) / 4 * 4);
}

}  // namespace

template <typename T>
bool Tridiagonalization<T>::Suits(int64_t n) {
  const GemmTiles tiles = GetGemmTiles(kDTypeOf<R>);
  return n >= kUpdatePanelColumns / 2 && tiles.rows > 0 && tiles.rows <= kUpdateMostTileRows;
}

template <typename T>
Tridiagonalization<T>::Tridiagonalization(int64_t n)
    : n_(n), tiles_(GetGemmTiles(kDTypeOf<R>)), loops_(GetReductionLoops<T>()) {
  factors_ = layout_.Add<T>(n * kUpdatePanelColumns);
  line_ = layout_.Add<T>(2 * kTridiagonalPanelColumns<T>);
  parts_ = layout_.Add<T>(kTridiagonalParts * n);
  projected_ = layout_.Add<T>(2 * kTridiagonalPanelColumns<T>);
}

// w = A·v for the part after column `first`.
template <typename T>
void Tridiagonalization<T>::Multiply(int64_t first, const T* a, const T* v, T* parts, T* w, ThreadPool& pool) const {
  const int64_t rows = n_ - first;
  const T* const corner = a + first * (n_ + 1);
  if (rows < kSharedTridiagonal<T>) {
    std::fill_n(w, rows, T(0));
    return loops_.add_hermitian(rows, 0, rows, corner, corner - a, n_, v, w);
  }
  pool.ParallelFor(kTridiagonalParts, [&](int64_t part) {
    const int64_t begin = PartBegin(rows, part);
    T* const into = parts + part * n_;
    std::fill(into + begin, into + rows, T(0));
    loops_.add_hermitian(rows, begin, PartBegin(rows, part + 1), corner, corner - a, n_, v, into);
  });
  std::copy_n(parts, rows, w);
  for (int64_t part = 1; part < kTridiagonalParts; ++part) {
    for (int64_t i = PartBegin(rows, part); i < rows; ++i) w[i] += parts[part * n_ + i];
  }
}

template <typename T>
void Tridiagonalization<T>::ReduceColumn(int64_t first, int64_t i, T* a, const Work& work, R* diagonal, R* beside,
                                         T* tau, ThreadPool& pool) const {
  const int64_t panel_rows = n_ - first, rows = panel_rows - i, known = 2 * i;
  const int64_t leading = kNumberParts<T> * panel_rows;  // of the factors
  T* const column = a + (first + i) * (n_ + 1);
  // Line i of W and V, so that they meet the other one's columns.
  for (int64_t k = 0; k < known; ++k) work.projected[k] = -Conjugate(work.factors[(k ^ 1) * leading + i]);
  AddProduct(rows, known, work.factors + i, leading, work.projected, column);
  diagonal[first + i] = std::real(column[0]);
  if (rows == 1) return;

  const int64_t below = rows - 1;
  T& scale = tau[first + i];
  lapack::Larfg(below, column + 1, column + 2, &scale);
  beside[first + i] = std::real(column[1]);
  T *const v = work.factors + known * leading, *const w = v + leading;
  std::fill_n(v, i + 1, T(0));
  std::fill_n(w, i + 1, T(0));
  T *const v_below = v + i + 1, *const w_below = w + i + 1;
  v_below[0] = 1;
  std::copy_n(column + 2, below - 1, v_below + 1);
  Multiply(first + i + 1, a, v_below, work.parts, w_below, pool);
  Project(below, known, work.factors + i + 1, leading, v_below, work.line);
  for (int64_t k = 0; k < known; ++k) work.projected[k] = -work.line[k ^ 1];
  AddProduct(below, known, work.factors + i + 1, leading, work.projected, w_below);
  T product = 0;
  for (int64_t k = 0; k < below; ++k) {
    w_below[k] = cpu::Multiply(w_below[k], scale);
    product += cpu::Multiply(Conjugate(w_below[k]), v_below[k]);
  }
  const T part = cpu::Multiply(-scale / R(2), product);
  for (int64_t k = 0; k < below; ++k) w_below[k] += cpu::Multiply(part, v_below[k]);
  AddColumnTimesI(v, panel_rows);
  AddColumnTimesI(w, panel_rows);
}

// Updates the lower triangle of the columns after the panel; the part above it in the chunk is computed in vain.
template <typename T>
void Tridiagonalization<T>::Update(int64_t first, int64_t column, int64_t count, const T* factors, T* a) const {
  constexpr int kReals = kNumberParts<T>;
  const int64_t leading = kReals * (n_ - first), row = column - first;
  alignas(64) R negated[kUpdatePanelColumns * kUpdateChunkColumns];
  for (int64_t j = 0; j < count; j += tiles_.columns) {
    R* const into = negated + j * kUpdatePanelColumns;
    const int64_t width = std::min(tiles_.columns, count - j);
    for (int64_t k = 0; k < 2 * kTridiagonalPanelColumns<T>; ++k) {
      const T* const line = factors + (k ^ 1) * leading + row + j;
      R* const terms = into + k * kReals * tiles_.columns;
      for (int64_t c = 0; c < width; ++c) {
        terms[c] = -std::real(line[c]);
        if constexpr (kReals == 2) terms[tiles_.columns + c] = line[c].imag();
      }
    }
  }
  PanelUpdate<R>{.rows = kReals * (n_ - column),
                 .columns = count,
                 .terms = kUpdatePanelColumns,
                 .a = reinterpret_cast<const R*>(factors + row),
                 .a_leading = kReals * (n_ - first),
                 .b = negated,
                 .c = reinterpret_cast<R*>(a + column * (n_ + 1)),
                 .c_leading = kReals * n_}
      .Run(tiles_);
}

template <typename T>
void Tridiagonalization<T>::Run(T* a, R* diagonal, R* beside, T* tau, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  const Work work{.factors = at(factors_), .line = at(line_), .parts = at(parts_), .projected = at(projected_)};
  for (int64_t first = 0; first < n_; first += kTridiagonalPanelColumns<T>) {
    const int64_t columns = std::min(kTridiagonalPanelColumns<T>, n_ - first);
    for (int64_t i = 0; i < columns; ++i) {
      if (StopRequested()) return;
      ReduceColumn(first, i, a, work, diagonal, beside, tau, pool);
    }
    const int64_t next = first + columns;
    if (next == n_) break;
    pool.ParallelForBlocks(n_ - next, kUpdateChunkColumns, [&](int64_t begin, int64_t end) {
      Update(first, next + begin, end - begin, work.factors, a);
    });
  }
}

template class Tridiagonalization<float>;
template class Tridiagonalization<double>;
template class Tridiagonalization<std::complex<float>>;
template class Tridiagonalization<std::complex<double>>;

}  // namespace tensord::cpu
