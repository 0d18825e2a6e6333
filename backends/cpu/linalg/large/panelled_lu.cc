#include "backends/cpu/linalg/large/panelled_lu.h"

#include <algorithm>

#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {
namespace {

// Panels by LAPACK, which nothing stops, and chunks by BLAS as tasks; narrower ones where few are left, so that threads
// end together.
constexpr int64_t kLuPanelColumns = 64;
constexpr int64_t kLuChunkColumns = 128;
constexpr int64_t kLuNarrowChunk = 64;
constexpr int64_t kLuFewChunks = 4;
constexpr int64_t kLeastLuWork = int64_t{1} << 21;  // below it one call costs as little

}  // namespace

template <typename T>
bool PanelledLu<T>::Suits(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  return k > kLuPanelColumns && m * n >= kLeastLuWork / k;
}

template <typename T>
PanelledLu<T>::PanelledLu(int64_t m, int64_t n, bool wants_lower)
    : m_(m), n_(n), panels_{.m = m, .n = n, .most_columns = kLuPanelColumns}, wants_lower_(wants_lower) {}

template <typename T>
void PanelledLu<T>::Factor(const LuPanel& panel, T* a, lapack_int* pivots) const {
  lapack::Getrf(m_ - panel.first, panel.columns, a + panel.first * (m_ + 1), m_, pivots + panel.first);
  for (int64_t i = panel.first; i < panel.end(); ++i) pivots[i] += static_cast<lapack_int>(panel.first);
}

template <typename T>
void PanelledLu<T>::Update(const LuPanel& panel, const lapack_int* pivots, int64_t column, int64_t count, T* a) const {
  panels_.Exchange(pivots, panel.first, panel.end(), column, count, a);
  const T* const corner = a + panel.first * (m_ + 1);
  T* const top = a + column * m_ + panel.first;
  lapack::Trsm({.left = true, .lower = true, .transpose = CblasNoTrans, .unit_diagonal = true}, panel.columns, count,
               corner, m_, top, m_);
  lapack::SubtractProduct({.m = m_ - panel.end(), .n = count, .k = panel.columns}, corner + panel.columns, m_, top, m_,
                          top + panel.columns, m_);
}

template <typename T>
int64_t PanelledLu<T>::Run(T* a, lapack_int* pivots, ThreadPool& pool) const {
  const int64_t k = panels_.diagonal();
  Factor(panels_.At(0), a, pivots);
  for (int64_t first = 0; first < k; first += kLuPanelColumns) {
    const LuPanel panel = panels_.At(first), next = panels_.Next(panel);
    const int64_t rest = n_ - next.end();
    const int64_t chunk = rest < kLuFewChunks * kLuChunkColumns ? kLuNarrowChunk : kLuChunkColumns;
    const auto update = [&](int64_t task) {
      if (task > 0) {
        const int64_t column = next.end() + (task - 1) * chunk;
        return Update(panel, pivots, column, std::min(chunk, n_ - column), a);
      }
      if (next.columns == 0) return;
      Update(panel, pivots, next.first, next.columns, a);
      Factor(next, a, pivots);
    };
    if (!pool.ParallelFor(1 + (rest + chunk - 1) / chunk, update)) return -1;
  }
  if (wants_lower_) panels_.ExchangeBefore(pivots, a, pool);
  return panels_.FirstZeroPivot(a);
}

template class PanelledLu<float>;
template class PanelledLu<double>;
template class PanelledLu<lapack::Complex64>;
template class PanelledLu<lapack::Complex128>;

}  // namespace tensord::cpu
