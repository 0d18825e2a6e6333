#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VECTORS_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VECTORS_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/batch.h"

namespace tensord::cpu {

// Eigenvalues and eigenvectors of a symmetric tridiagonal matrix of finite numbers, by divide and conquer [Cuppen, A
// divide and conquer method for the symmetric tridiagonal eigenproblem, 1981], with vectors that are orthogonal however
// close values lie [Gu and Eisenstat, A divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem, 1995].
// LAPACK's stedc is one call for all of it; here LAPACK has the leaves and each root, and the rest are tasks of the
// pool, between which the run may be stopped.
//
// Immutable after construction, so thread-safe. Run allocates no more than plans of large products, gives the same bits
// for any number of threads, and returns 0, or more where an iteration does not converge; `scratch` is aligned to 64
// and belongs to the call.
template <typename R>
class TridiagonalVectors {
 public:
  explicit TridiagonalVectors(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // The values, ascending, are in `diagonal` then, and `beside` (n - 1 elements) is undefined. `vectors` is n x n.
  int64_t Run(R* diagonal, R* beside, R* vectors, char* scratch, ThreadPool& pool) const;

 private:
  class Call;
  class Merge;

  int64_t n_;
  ScratchLayout layout_;
  int64_t order_ = 0, group_ = 0, secular_ = 0, types_ = 0;
  int64_t line_ = 0, poles_ = 0, weights_ = 0, deflated_ = 0, packed_ = 0, factor_ = 0, product_ = 0;
  int64_t product_bytes_ = 0;
};

extern template class TridiagonalVectors<float>;
extern template class TridiagonalVectors<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VECTORS_H_
