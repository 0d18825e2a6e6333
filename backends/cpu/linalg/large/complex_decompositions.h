#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_COMPLEX_DECOMPOSITIONS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_COMPLEX_DECOMPOSITIONS_H_

#include <complex>
#include <cstdint>
#include <optional>

#include "backends/cpu/contraction/plain_product.h"
#include "backends/cpu/linalg/divided/bidiagonal_vectors.h"
#include "backends/cpu/linalg/divided/tridiagonal_vectors.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/large/bidiagonalization.h"
#include "backends/cpu/linalg/large/block_reflectors.h"
#include "backends/cpu/linalg/large/tridiagonalization.h"

namespace tensord::cpu {

// Decompositions of one large matrix of C64 or C128, R the dtype of its parts. The reduction leaves a real matrix of
// two diagonals, of which the vectors are found apart; the unitary matrices are made out of the reflectors. The
// vectors of the whole are products of the two, of which one factor is real: half of the multiplications of complex
// products, as products of real matrices on all threads.
//
// Immutable after construction, so thread-safe. Run does not allocate, gives the same bits for any number of threads,
// and returns LAPACK's info; `scratch` is aligned to 64 and belongs to the call.

// Eigenvectors of a Hermitian matrix of numbers of an ordinary scale; the lower triangle is read.
template <typename R>
class ComplexEigh {
 public:
  using C = std::complex<R>;
  static bool Suits(int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<ComplexEigh> Plan(int64_t n) {
    return Suits(n) ? std::make_optional(ComplexEigh(n)) : std::nullopt;
  }

  explicit ComplexEigh(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` may be `vectors`.
  int64_t Run(const C* a, R* values, C* vectors, char* scratch, ThreadPool& pool) const;

 private:
  int64_t n_;
  Tridiagonalization<C> tridiagonalization_;
  TridiagonalVectors<R> tridiagonal_vectors_;
  BlockReflectors reflectors_;
  PlainProduct product_;
  ScratchLayout layout_;
  int64_t q_ = 0, beside_ = 0, tau_ = 0, work_ = 0;
  int64_t real_vectors_ = 0;
};

// Singular values and vectors of a matrix that is not far from square, with numbers of an ordinary scale.
template <typename R>
class ComplexSvd {
 public:
  using C = std::complex<R>;
  static bool Suits(int64_t m, int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<ComplexSvd> Plan(int64_t m, int64_t n, bool full) {
    return Suits(m, n) ? std::make_optional(ComplexSvd(m, n, full)) : std::nullopt;
  }

  ComplexSvd(int64_t m, int64_t n, bool full);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` may be `u`, where there are no fewer rows than columns, else `vh`.
  int64_t Run(const C* a, C* u, R* s, C* vh, char* scratch, ThreadPool& pool) const;

 private:
  void MultiplyLeft(const R* real_u, C* u, char* scratch, ThreadPool& pool) const;
  void MultiplyRight(const R* real_vh, C* vh, char* scratch, ThreadPool& pool) const;

  int64_t m_, n_, k_;
  int64_t u_columns_, vh_rows_;
  int64_t column_skip_, row_skip_;  // the first rows, or columns, that reflectors leave alone
  Bidiagonalization<C> bidiagonalization_;
  BidiagonalVectors<R> bidiagonal_vectors_;
  BlockReflectors q_reflectors_, p_reflectors_;
  PlainProduct left_, right_;
  ScratchLayout layout_;
  int64_t q_ = 0, p_ = 0, beside_ = 0, column_tau_ = 0, row_tau_ = 0;
  int64_t real_u_ = 0, real_vh_ = 0, work_ = 0;
};

extern template class ComplexEigh<float>;
extern template class ComplexEigh<double>;
extern template class ComplexSvd<float>;
extern template class ComplexSvd<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_COMPLEX_DECOMPOSITIONS_H_
