#ifndef TENSORD_BACKENDS_CPU_LINALG_BLOCKED_TRIANGULAR_SOLVE_H_
#define TENSORD_BACKENDS_CPU_LINALG_BLOCKED_TRIANGULAR_SOLVE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/panel_factor_loops.h"

namespace tensord::cpu {

// A triangular system of F32 or F64, solved in place of its right-hand sides on one thread: by halves, between which
// what is known is subtracted as a product, down to diagonal blocks with loops of ours. OpenBLAS solves for the rows of
// a register's tile one number at a time, which takes as long as all of its products, however large the system is.
//
// Immutable after construction, so thread-safe. Run does not allocate; it ends early, with the sides undefined, if its
// run is not wanted any more.
template <typename T>
class BlockedTriangularSolve {
 public:
  // Plans systems of n rows; nothing if one call of BLAS is as fast.
  static std::optional<BlockedTriangularSolve> Plan(const lapack::Triangle& triangle, int64_t n, int64_t sides);

  // Solves like lapack::Trsm, for that many sides. No pivot may be subnormal: their reciprocals are taken.
  void Run(const T* a, int64_t lda, int64_t sides, T* b, int64_t ldb) const;

 private:
  struct Call;
  using Range = std::pair<int64_t, int64_t>;  // of rows of the system, half-open

  BlockedTriangularSolve(const lapack::Triangle& triangle, int64_t n);
  void Solve(const Call& call, Range rows) const;
  void Subtract(const Call& call, Range known, Range from) const;
  void SolveDiagonal(const Call& call, Range rows) const;
  void PackDiagonal(const Call& call, Range rows, T* factor, T* inverses) const;
  // Returns the place in the system of the row that is solved for after `before` others of a block.
  int64_t RowOf(Range rows, int64_t before) const { return is_lower_ ? rows.first + before : rows.second - 1 - before; }

  lapack::Triangle triangle_;
  int64_t n_;
  // The form of M, in the system M·X = B. X·op(A) = B is op(A)^T·X^T = B^T.
  bool is_transposed_;  // M is the transpose of A
  bool is_lower_;
  FactorizationLoops<T> loops_;
};

extern template class BlockedTriangularSolve<float>;
extern template class BlockedTriangularSolve<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_BLOCKED_TRIANGULAR_SOLVE_H_
