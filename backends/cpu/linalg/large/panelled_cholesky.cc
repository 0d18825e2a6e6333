#include "backends/cpu/linalg/large/panelled_cholesky.h"

#include <algorithm>

#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastPanelledCholesky = 128;  // below it one call costs as little
// Panels by LAPACK, the rest by BLAS, for which they are deep enough; tasks of the rest are so many rows or columns,
// between which it is asked whether the run is still wanted.
constexpr int64_t kCholeskyPanelColumns = 96;
constexpr int64_t kCholeskySolvedRows = 128;
constexpr int64_t kCholeskyChunkColumns = 192;

}  // namespace

template <typename T>
bool PanelledCholesky<T>::Suits(int64_t n) {
  return n >= kLeastPanelledCholesky;
}

template <typename T>
void PanelledCholesky<T>::SolveBelow(int64_t first, int64_t row, int64_t rows, T* a) const {
  lapack::Trsm({.left = false, .lower = true, .transpose = CblasConjTrans, .unit_diagonal = false}, rows,
               kCholeskyPanelColumns, a + first * (n_ + 1), n_, a + first * n_ + row, n_);
}

template <typename T>
void PanelledCholesky<T>::Update(int64_t first, int64_t column, int64_t count, T* a) const {
  const T* const below = a + first * n_ + column;
  T* const corner = a + column * (n_ + 1);
  lapack::SubtractGram(count, kCholeskyPanelColumns, below, n_, corner, n_);
  lapack::SubtractProduct(
      {.m = n_ - column - count, .n = count, .k = kCholeskyPanelColumns, .transpose_b = CblasConjTrans}, below + count,
      n_, below, n_, corner + count, n_);
}

template <typename T>
int64_t PanelledCholesky<T>::Run(T* a, ThreadPool& pool) const {
  int64_t info = 0;
  const auto factor = [&](int64_t first) {
    info = lapack::Potrf(std::min(kCholeskyPanelColumns, n_ - first), a + first * (n_ + 1), n_);
    if (info > 0) info += first;
  };
  factor(0);
  for (int64_t first = 0; info == 0 && first + kCholeskyPanelColumns < n_; first += kCholeskyPanelColumns) {
    const int64_t next = first + kCholeskyPanelColumns, rows = n_ - next;
    const auto solve = [&](int64_t begin, int64_t end) { SolveBelow(first, next + begin, end - begin, a); };
    const auto update = [&](int64_t begin, int64_t end) {
      Update(first, next + begin, end - begin, a);
      if (begin == 0) factor(next);
    };
    if (!pool.ParallelForBlocks(rows, kCholeskySolvedRows, solve) ||
        !pool.ParallelForBlocks(rows, kCholeskyChunkColumns, update)) {
      break;
    }
  }
  return info;
}

template class PanelledCholesky<float>;
template class PanelledCholesky<double>;
template class PanelledCholesky<lapack::Complex64>;
template class PanelledCholesky<lapack::Complex128>;

}  // namespace tensord::cpu
