#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VECTORS_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VECTORS_H_

#include <cstdint>

#include "backends/cpu/linalg/divided/bidiagonal_merge.h"
#include "backends/cpu/linalg/lapack/batch.h"

namespace tensord::cpu {

// Singular values and vectors of an upper bidiagonal matrix of finite numbers, B = U·diag(values)·V^T, by divide and
// conquer [Gu and Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, 1995]: a row is taken out, and the
// two parts, of which one has a column more than rows, are put together with it. LAPACK's bdsdc is one call for all of
// it; here LAPACK has the leaves and each root, and the rest are tasks of the pool, between which the run may be
// stopped.
//
// Immutable after construction, so thread-safe. Run allocates no more than plans of large products, gives the same bits
// for any number of threads, and returns 0, or more where an iteration does not converge; `scratch` is aligned to 64
// and belongs to the call.
template <typename R>
class BidiagonalVectors {
 public:
  explicit BidiagonalVectors(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  using Vectors = typename BidiagonalWork<R>::Matrix;
  // Decomposes a bidiagonal matrix, a lower one if `is_upper` is false. Leaves the values, descending, in `diagonal`;
  // `beside` (n - 1 elements) is undefined afterwards.
  int64_t Run(bool is_upper, R* diagonal, R* beside, const Vectors& u, const Vectors& v_transposed, char* scratch,
              ThreadPool& pool) const;

 private:
  class Call;

  int64_t n_;
  ScratchLayout layout_;
  int64_t order_ = 0, group_ = 0, secular_ = 0, types_ = 0;
  int64_t line_ = 0, poles_ = 0, weights_ = 0, deflated_ = 0;
  int64_t other_ = 0, packed_u_ = 0, packed_v_ = 0, factor_u_ = 0, factor_v_ = 0, product_ = 0;
  int64_t product_bytes_ = 0;
};

extern template class BidiagonalVectors<float>;
extern template class BidiagonalVectors<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VECTORS_H_
