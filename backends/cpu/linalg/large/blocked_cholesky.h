#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_CHOLESKY_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_CHOLESKY_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/large/panel_factor_loops.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

class ThreadPool;

// The Cholesky factor of one large symmetric matrix of F32 or F64, in place of its lower triangle, on all threads; the
// part above is undefined afterwards. Right-looking: LAPACK factors the diagonal block of a panel, the rows below are
// solved for in parts, and the columns after it are updated in chunks. The first of the chunks is the next panel, whose
// diagonal block is factored while others work on the rest.
//
// Immutable after construction, so thread-safe. Run does not allocate, and gives the same bits for any number of
// threads.
template <typename T>
class BlockedCholesky {
 public:
  static bool Suits(int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<BlockedCholesky> Plan(int64_t n) {
    return Suits(n) ? std::make_optional(BlockedCholesky(n)) : std::nullopt;
  }

  explicit BlockedCholesky(int64_t n);
  // LAPACK's info.
  int64_t Run(T* a, ThreadPool& pool) const;

 private:
  struct Diagonal;

  int64_t FactorDiagonal(int64_t first, T* a, Diagonal* diagonal) const;
  void SolveBelow(int64_t first, const Diagonal& diagonal, int64_t row, int64_t rows, T* a) const;
  void Update(int64_t first, int64_t column, int64_t count, T* a) const;

  int64_t n_;
  GemmTiles tiles_;
  FactorizationLoops<T> loops_;
};

extern template class BlockedCholesky<float>;
extern template class BlockedCholesky<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_CHOLESKY_H_
