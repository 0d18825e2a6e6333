#include "backends/cpu/linalg/large/values.h"

#include <algorithm>

#include "backends/cpu/linalg/divided/bidiagonal_values.h"
#include "backends/cpu/linalg/divided/tridiagonal_values.h"
#include "backends/cpu/linalg/lapack/copies.h"
#include "backends/cpu/linalg/lapack/number_parts.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastValuesSize = 128;  // below it LAPACK's drivers cost as little

bool TakesFactors(int64_t many, int64_t few) { return 5 * many >= 8 * few; }

}  // namespace

template <typename T>
bool LargeEighValues<T>::Suits(int64_t n) {
  return n >= kLeastValuesSize && Tridiagonalization<T>::Suits(n);
}

template <typename T>
LargeEighValues<T>::LargeEighValues(int64_t n) : n_(n), tridiagonalization_(n) {
  a_ = layout_.Add<T>(n * n);
  beside_ = layout_.Add<R>(n);
  tau_ = layout_.Add<T>(n);
  work_ = layout_.Add<char>(tridiagonalization_.scratch_bytes());
}

template <typename T>
int64_t LargeEighValues<T>::Run(const T* a, R* values, char* scratch, ThreadPool& pool) const {
  T* const reduced = reinterpret_cast<T*>(scratch + a_);
  R* const beside = reinterpret_cast<R*>(scratch + beside_);
  const R scale = ScaleToOrdinary(LargestOfLower(a, n_));
  for (int64_t j = 0; j < n_; ++j) {
    std::transform(a + j * (n_ + 1), a + (j + 1) * n_, reduced + j * (n_ + 1), [scale](T x) { return x * scale; });
  }
  tridiagonalization_.Run(reduced, values, beside, reinterpret_cast<T*>(scratch + tau_), scratch + work_, pool);
  if (StopRequested()) return 0;
  const int64_t info = TridiagonalValues(n_, values, beside);
  Divide(values, n_, scale);
  return info;
}

template <typename T>
bool LargeSvdValues<T>::Suits(int64_t m, int64_t n) {
  const int64_t few = std::min(m, n), many = std::max(m, n);
  return few >= kLeastValuesSize || (TakesFactors(many, few) && PanelledGeqrf<T>::Suits(m, n));
}

template <typename T>
LargeSvdValues<T>::LargeSvdValues(int64_t m, int64_t n)
    : m_(m),
      n_(n),
      many_(std::max(m, n)),
      few_(std::min(m, n)),
      takes_factors_(TakesFactors(many_, few_)),
      bidiagonalization_(takes_factors_ ? few_ : m, takes_factors_ ? few_ : n) {
  if (takes_factors_) geqrf_ = PanelledGeqrf<T>(many_, few_);
  a_ = layout_.Add<T>(m * n);
  if (takes_factors_) triangle_ = layout_.Add<T>(few_ * few_);
  beside_ = layout_.Add<R>(few_);
  column_tau_ = layout_.Add<T>(few_);
  row_tau_ = layout_.Add<T>(few_);
  // The steps follow each other.
  const int64_t values_bytes = 4 * few_ * static_cast<int64_t>(sizeof(R));
  work_ = layout_.Add<char>(std::max({geqrf_.scratch_bytes(), bidiagonalization_.scratch_bytes(), values_bytes}));
}

// With no fewer rows than columns, where its factors are taken.
template <typename T>
void LargeSvdValues<T>::CopyUpright(const T* a, R scale, T* into) const {
  if (!takes_factors_ || m_ >= n_) {
    std::transform(a, a + m_ * n_, into, [scale](T x) { return x * scale; });
    return;
  }
  for (int64_t j = 0; j < n_; ++j) {
    for (int64_t i = 0; i < m_; ++i) into[i * n_ + j] = Conjugate(a[j * m_ + i]) * scale;
  }
}

template <typename T>
int64_t LargeSvdValues<T>::Run(const T* a, R* values, char* scratch, ThreadPool& pool) const {
  const auto at = [&](int64_t place) { return reinterpret_cast<T*>(scratch + place); };
  T *const copy = at(a_), *const column_tau = at(column_tau_);
  R* const beside = reinterpret_cast<R*>(scratch + beside_);
  const R scale = ScaleToOrdinary(LargestOf(a, m_ * n_));
  CopyUpright(a, scale, copy);
  T* reduced = copy;
  if (takes_factors_) {
    if (const int64_t info = geqrf_.Run(copy, column_tau, scratch + work_, pool); info != 0) return info;
    if (StopRequested()) return 0;
    reduced = at(triangle_);
    CopyUpperClearLower(copy, many_, few_, few_, reduced);
  }
  bidiagonalization_.Run(reduced, values, beside, column_tau, at(row_tau_), scratch + work_, pool);
  if (StopRequested()) return 0;
  const int64_t info = BidiagonalValues(few_, values, beside, reinterpret_cast<R*>(scratch + work_));
  Divide(values, few_, scale);
  return info;
}

template class LargeEighValues<float>;
template class LargeEighValues<double>;
template class LargeEighValues<lapack::Complex64>;
template class LargeEighValues<lapack::Complex128>;
template class LargeSvdValues<float>;
template class LargeSvdValues<double>;
template class LargeSvdValues<lapack::Complex64>;
template class LargeSvdValues<lapack::Complex128>;

}  // namespace tensord::cpu
