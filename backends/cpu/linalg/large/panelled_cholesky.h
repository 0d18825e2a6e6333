#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_CHOLESKY_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_CHOLESKY_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/lapack/lapack.h"

namespace tensord::cpu {

class ThreadPool;

// The lower Cholesky factor of one large matrix in place of its lower triangle, on all threads, for numbers for which
// BlockedCholesky has no loops. LAPACK factors a diagonal block. BLAS solves for the rows below and updates the columns
// after it, in chunks of rows and columns, a task each.
//
// Thread-safe. Run does not allocate, and gives the same bits for any number of threads.
template <typename T>
class PanelledCholesky {
 public:
  static bool Suits(int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<PanelledCholesky> Plan(int64_t n) {
    return Suits(n) ? std::make_optional(PanelledCholesky(n)) : std::nullopt;
  }

  explicit PanelledCholesky(int64_t n) : n_(n) {}
  // Runs as LAPACK's potrf, info included.
  int64_t Run(T* a, ThreadPool& pool) const;

 private:
  void SolveBelow(int64_t first, int64_t row, int64_t rows, T* a) const;
  void Update(int64_t first, int64_t column, int64_t count, T* a) const;

  int64_t n_;
};

extern template class PanelledCholesky<float>;
extern template class PanelledCholesky<double>;
extern template class PanelledCholesky<lapack::Complex64>;
extern template class PanelledCholesky<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_CHOLESKY_H_
