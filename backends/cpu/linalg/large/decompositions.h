#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_DECOMPOSITIONS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_DECOMPOSITIONS_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/divided/bidiagonal_vectors.h"
#include "backends/cpu/linalg/divided/tridiagonal_vectors.h"
#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/large/bidiagonalization.h"
#include "backends/cpu/linalg/large/block_reflectors.h"
#include "backends/cpu/linalg/large/panelled_geqrf.h"
#include "backends/cpu/linalg/large/tridiagonalization.h"

namespace tensord::cpu {

// Decompositions of one large matrix on all threads, of F32 and F64, Qr of C64 and C128 too. LAPACK's routines do the
// narrow or serial parts. Products are ours; BlockReflectors makes those with unitary matrices. Each class is immutable
// after construction, does not allocate in Run, and gives the same bits for any number of threads. `scratch` is aligned
// to 64 and belongs to the call. Run returns LAPACK's info.

template <typename T>
class BlockedQr {
 public:
  static bool Suits(int64_t m, int64_t n, int64_t q_columns);
  // Plans it; nothing if another way is as fast.
  static std::optional<BlockedQr> Plan(int64_t m, int64_t n, int64_t q_columns, bool wants_q) {
    return Suits(m, n, q_columns) ? std::make_optional(BlockedQr(m, n, q_columns, wants_q)) : std::nullopt;
  }

  // Without `wants_q`, the memory of Q is scratch.
  BlockedQr(int64_t m, int64_t n, int64_t q_columns, bool wants_q);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  int64_t Run(const T* a, T* q, T* r, char* scratch, ThreadPool& pool) const;

 private:
  int64_t m_, n_, q_columns_;
  bool wants_q_;
  PanelledGeqrf<T> geqrf_;
  BlockReflectors q_;
  ScratchLayout layout_;
  int64_t tau_ = 0, work_ = 0;
};

// Eigenvectors of a symmetric matrix of numbers of an ordinary scale; the lower triangle is read.
template <typename T>
class BlockedEigh {
 public:
  static bool Suits(int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<BlockedEigh> Plan(int64_t n) {
    return Suits(n) ? std::make_optional(BlockedEigh(n)) : std::nullopt;
  }

  explicit BlockedEigh(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` may be `vectors`.
  int64_t Run(const T* a, T* values, T* vectors, char* scratch, ThreadPool& pool) const;

 private:
  int64_t n_;
  Tridiagonalization<T> tridiagonalization_;
  TridiagonalVectors<T> tridiagonal_vectors_;
  BlockReflectors q_;
  ScratchLayout layout_;
  int64_t a_ = 0, beside_ = 0, tau_ = 0, work_ = 0;
};

// Singular values and vectors of a matrix that is not far from square, with numbers of an ordinary scale.
template <typename T>
class BlockedSvd {
 public:
  static bool Suits(int64_t m, int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<BlockedSvd> Plan(int64_t m, int64_t n, bool full) {
    return Suits(m, n) ? std::make_optional(BlockedSvd(m, n, full)) : std::nullopt;
  }

  BlockedSvd(int64_t m, int64_t n, bool full);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` may be `u`, where there are no fewer rows than columns, else `vh`.
  int64_t Run(const T* a, T* u, T* s, T* vh, char* scratch, ThreadPool& pool) const;

 private:
  int64_t m_, n_, k_;
  int64_t u_columns_, vh_rows_;
  Bidiagonalization<T> bidiagonalization_;
  BidiagonalVectors<T> bidiagonal_vectors_;
  BlockReflectors q_, p_;
  ScratchLayout layout_;
  int64_t a_ = 0, beside_ = 0, column_tau_ = 0, row_tau_ = 0, work_ = 0;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_DECOMPOSITIONS_H_
