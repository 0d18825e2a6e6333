#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_OBLONG_SVD_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_OBLONG_SVD_H_

#include <cstdint>
#include <optional>
#include <type_traits>

#include "backends/cpu/linalg/lapack/batch.h"
#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/block_reflectors.h"
#include "backends/cpu/linalg/large/complex_decompositions.h"
#include "backends/cpu/linalg/large/decompositions.h"
#include "backends/cpu/linalg/large/panelled_geqrf.h"
#include "backends/cpu/linalg/large/small_svd.h"

namespace tensord::cpu {

// The decomposition of one large matrix that is not far from square, on all threads.
template <typename T>
using LargeSvd = std::conditional_t<lapack::kIsComplex<T>, ComplexSvd<lapack::Real<T>>, BlockedSvd<lapack::Real<T>>>;

// Singular values and vectors of one large matrix that is far from square, with numbers of an ordinary scale. They are
// those of the triangle of its QR factors, or of its adjoint's if it is wide, as in LAPACK's gesdd [Chan, An improved
// algorithm for computing the singular value decomposition, 1982].
//
// Immutable after construction, so thread-safe. Run does not allocate, gives the same bits for any number of threads,
// and returns LAPACK's info; `scratch` is aligned to 64 and belongs to the call.
template <typename T>
class OblongSvd {
 public:
  using R = lapack::Real<T>;
  static bool Suits(int64_t m, int64_t n, bool full);
  // Plans it; nothing if another way is as fast.
  static std::optional<OblongSvd> Plan(int64_t m, int64_t n, bool full) {
    return Suits(m, n, full) ? std::make_optional(OblongSvd(m, n, full)) : std::nullopt;
  }

  OblongSvd(int64_t m, int64_t n, bool full);
  int64_t scratch_bytes() const { return layout_.bytes(); }
  // `a` may be `u`, where there are no fewer rows than columns, else `vh`.
  int64_t Run(const T* a, T* u, R* s, T* vh, char* scratch, ThreadPool& pool) const;

 private:
  int64_t RunTriangle(T* triangle, T* left, R* s, T* right, char* scratch, ThreadPool& pool) const;
  void PutOnDiagonal(const T* small, T* large, ThreadPool& pool) const;

  int64_t many_, few_;
  bool is_wide_;
  int64_t q_columns_;
  PanelledGeqrf<T> geqrf_;
  // The decomposition of the triangle; one of the two is set.
  std::optional<LargeSvd<T>> large_;
  std::optional<SmallSvd<T>> small_;
  BlockReflectors q_;
  ScratchLayout layout_;
  int64_t a_ = 0, tau_ = 0, triangle_ = 0, left_ = 0, right_ = 0, q_place_ = 0, work_ = 0;
};

extern template class OblongSvd<float>;
extern template class OblongSvd<double>;
extern template class OblongSvd<lapack::Complex64>;
extern template class OblongSvd<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_OBLONG_SVD_H_
