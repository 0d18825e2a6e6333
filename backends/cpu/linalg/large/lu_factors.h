#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_FACTORS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_FACTORS_H_

#include <algorithm>
#include <optional>

#include "backends/cpu/linalg/large/blocked_lu.h"
#include "backends/cpu/linalg/large/panelled_lu.h"
#include "backends/cpu/linalg/large/tiny_pivots.h"

namespace tensord::cpu {

// LU factors with partial pivoting in place of a matrix, by our blocks or panels where they suit and else by one call
// of LAPACK. As BlockedLu.
template <typename T>
class LuFactors {
 public:
  LuFactors(int64_t m, int64_t n, bool wants_lower = true) : m_(m), n_(n) {
    if constexpr (!lapack::kIsComplex<T>) {
      blocked_ = BlockedLu<T>::Plan(m, n, wants_lower);
      if (blocked_.has_value()) return;
    }
    panelled_ = PanelledLu<T>::Plan(m, n, wants_lower);
  }

  int64_t scratch_bytes() const { return blocked_.has_value() ? blocked_->scratch_bytes() : 0; }

  // `original` is the matrix that `a` has before.
  int64_t Run(const T* original, T* a, lapack_int* pivots, char* scratch, ThreadPool& pool) const {
    const int64_t info = RunFast(a, pivots, scratch, pool);
    if (info < 0 || !HasTinyPivot(a, m_, std::min(m_, n_))) return info;
    std::copy_n(original, m_ * n_, a);
    return FactorByDivision(m_, n_, a, pivots);
  }

 private:
  int64_t RunFast(T* a, lapack_int* pivots, char* scratch, ThreadPool& pool) const {
    if constexpr (!lapack::kIsComplex<T>) {
      if (blocked_.has_value()) return blocked_->Run(a, pivots, scratch, pool);
    }
    if (panelled_.has_value()) return panelled_->Run(a, pivots, pool);
    return lapack::Getrf(m_, n_, a, m_, pivots);
  }

  int64_t m_, n_;
  std::optional<BlockedLu<lapack::Real<T>>> blocked_;
  std::optional<PanelledLu<T>> panelled_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_FACTORS_H_
