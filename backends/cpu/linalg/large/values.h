#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_VALUES_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_VALUES_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/large/bidiagonalization.h"
#include "backends/cpu/linalg/large/panelled_geqrf.h"
#include "backends/cpu/linalg/large/tridiagonalization.h"

namespace tensord::cpu {

// Values of one large matrix without vectors: its reduction on all threads, and iterations for two diagonals, which
// take a time of n².
//
// Immutable after construction, so thread-safe. Run does not allocate, gives the same bits for any number of threads,
// and returns LAPACK's info; `scratch` is aligned to 64 and belongs to the call. The numbers are finite.

// Eigenvalues of a Hermitian matrix; the lower triangle is read.
template <typename T>
class LargeEighValues {
 public:
  using R = lapack::Real<T>;
  static bool Suits(int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<LargeEighValues> Plan(int64_t n) {
    return Suits(n) ? std::make_optional(LargeEighValues(n)) : std::nullopt;
  }

  explicit LargeEighValues(int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  int64_t Run(const T* a, R* values, char* scratch, ThreadPool& pool) const;

 private:
  int64_t n_;
  Tridiagonalization<T> tridiagonalization_;
  ScratchLayout layout_;
  int64_t a_ = 0, beside_ = 0, tau_ = 0, work_ = 0;
};

// Singular values of any matrix. If it is far from square, the R of its QR factors, or of its adjoint's, is decomposed
// instead.
template <typename T>
class LargeSvdValues {
 public:
  using R = lapack::Real<T>;
  static bool Suits(int64_t m, int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<LargeSvdValues> Plan(int64_t m, int64_t n) {
    return Suits(m, n) ? std::make_optional(LargeSvdValues(m, n)) : std::nullopt;
  }

  LargeSvdValues(int64_t m, int64_t n);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  int64_t Run(const T* a, R* values, char* scratch, ThreadPool& pool) const;

 private:
  void CopyUpright(const T* a, R scale, T* into) const;

  int64_t m_, n_;
  int64_t many_, few_;
  bool takes_factors_;
  PanelledGeqrf<T> geqrf_;
  Bidiagonalization<T> bidiagonalization_;
  ScratchLayout layout_;
  int64_t a_ = 0, triangle_ = 0, beside_ = 0, column_tau_ = 0, row_tau_ = 0, work_ = 0;
};

extern template class LargeEighValues<float>;
extern template class LargeEighValues<double>;
extern template class LargeEighValues<lapack::Complex64>;
extern template class LargeEighValues<lapack::Complex128>;
extern template class LargeSvdValues<float>;
extern template class LargeSvdValues<double>;
extern template class LargeSvdValues<lapack::Complex64>;
extern template class LargeSvdValues<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_VALUES_H_
