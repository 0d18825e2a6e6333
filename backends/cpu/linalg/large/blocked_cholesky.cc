#include "backends/cpu/linalg/large/blocked_cholesky.h"

#include <algorithm>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/panel_update.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastCholeskySize = 128;  // below it LAPACK's calls cost as little
constexpr int64_t kSolvedRows = 64;          // below a diagonal block, on the stack: 32 KiB of F64

}  // namespace

// A diagonal block's factor, rows side by side, and the reciprocals of its diagonal.
template <typename T>
struct BlockedCholesky<T>::Diagonal {
  alignas(64) T factor[kUpdatePanelColumns * kUpdatePanelColumns];
  T inverses[kUpdatePanelColumns];
};

template <typename T>
bool BlockedCholesky<T>::Suits(int64_t n) {
  const GemmTiles tiles = GetGemmTiles(kDTypeOf<T>);
  return n >= kLeastCholeskySize && tiles.rows > 0 && tiles.rows <= kUpdateMostTileRows;
}

template <typename T>
BlockedCholesky<T>::BlockedCholesky(int64_t n)
    : n_(n), tiles_(GetGemmTiles(kDTypeOf<T>)), loops_(GetFactorizationLoops<T>()) {}

template <typename T>
int64_t BlockedCholesky<T>::FactorDiagonal(int64_t first, T* a, Diagonal* diagonal) const {
  const int64_t columns = std::min(kUpdatePanelColumns, n_ - first);
  T* const corner = a + first * (n_ + 1);
  if (const int64_t info = lapack::Potrf(columns, corner, n_); info != 0) return info < 0 ? info : first + info;
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j; i < columns; ++i) diagonal->factor[i * columns + j] = corner[j * n_ + i];
    diagonal->inverses[j] = T(1) / corner[j * (n_ + 1)];
  }
  return 0;
}

// X·L^T = B is L·X^T = B^T, and where B lies its transpose has rows side by side.
template <typename T>
void BlockedCholesky<T>::SolveBelow(int64_t first, const Diagonal& diagonal, int64_t row, int64_t rows, T* a) const {
  alignas(64) T part[kUpdatePanelColumns * kSolvedRows];
  T* const below = a + first * n_ + row;
  for (int64_t j = 0; j < kUpdatePanelColumns; ++j) {
    std::copy_n(below + j * n_, rows, part + j * kSolvedRows);
    std::fill(part + j * kSolvedRows + rows, part + (j + 1) * kSolvedRows, T(0));
  }
  loops_.solve(kUpdatePanelColumns, diagonal.factor, diagonal.inverses, kSolvedRows, part);
  for (int64_t j = 0; j < kUpdatePanelColumns; ++j) std::copy_n(part + j * kSolvedRows, rows, below + j * n_);
}

template <typename T>
void BlockedCholesky<T>::Update(int64_t first, int64_t column, int64_t count, T* a) const {
  alignas(64) T negated[kUpdatePanelColumns * kUpdateChunkColumns];
  const T* const panel = a + first * n_ + column;
  for (int64_t j = 0; j < count; j += tiles_.columns) {
    T* const into = negated + j * kUpdatePanelColumns;
    const int64_t width = std::min(tiles_.columns, count - j);
    for (int64_t i = 0; i < kUpdatePanelColumns; ++i) {
      for (int64_t c = 0; c < width; ++c) into[i * tiles_.columns + c] = -panel[i * n_ + j + c];
    }
  }
  PanelUpdate<T>{.rows = n_ - column,
                 .columns = count,
                 .terms = kUpdatePanelColumns,
                 .a = panel,
                 .a_leading = n_,
                 .b = negated,
                 .c = a + column * (n_ + 1),
                 .c_leading = n_}
      .Run(tiles_);
}

template <typename T>
int64_t BlockedCholesky<T>::Run(T* a, ThreadPool& pool) const {
  Diagonal diagonals[2];
  int64_t info = FactorDiagonal(0, a, &diagonals[0]);
  for (int64_t first = 0; info == 0 && first + kUpdatePanelColumns < n_; first += kUpdatePanelColumns) {
    const int64_t next = first + kUpdatePanelColumns, rows = n_ - next;
    Diagonal *const diagonal = &diagonals[first / kUpdatePanelColumns % 2],
                    *const other = &diagonals[next / kUpdatePanelColumns % 2];
    const auto solve = [&](int64_t begin, int64_t end) { SolveBelow(first, *diagonal, next + begin, end - begin, a); };
    const auto update = [&](int64_t begin, int64_t end) {
      Update(first, next + begin, end - begin, a);
      if (begin == 0) info = FactorDiagonal(next, a, other);
    };
    if (!pool.ParallelForBlocks(rows, kSolvedRows, solve) ||
        !pool.ParallelForBlocks(rows, kUpdateChunkColumns, update)) {
      break;
    }
  }
  return info;
}

template class BlockedCholesky<float>;
template class BlockedCholesky<double>;

}  // namespace tensord::cpu
