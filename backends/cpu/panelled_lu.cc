#include "backends/cpu/panelled_lu.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/thread_pool.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLuPanelColumns = 64;
constexpr int64_t kLuChunkColumns = 128;
constexpr int64_t kLuNarrowChunk = 64;
constexpr int64_t kLuFewChunks = 4;
constexpr int64_t kLuExchangedColumns = 32;
constexpr int64_t kLeastLuWork = int64_t{1} << 21;  // below it one call costs as little

}  // namespace

template <typename T>
bool PanelledLu<T>::Suits(int64_t m, int64_t n) {
  const int64_t k = std::min(m, n);
  return k > kLuPanelColumns && m * n >= kLeastLuWork / k;
}

template <typename T>
typename PanelledLu<T>::Panel PanelledLu<T>::PanelAt(int64_t first) const {
  return {.first = first, .columns = std::min(kLuPanelColumns, std::min(m_, n_) - first)};
}

template <typename T>
void PanelledLu<T>::Exchange(const lapack_int* pivots, int64_t begin, int64_t end, int64_t column, int64_t count,
                             T* a) const {
  for (int64_t j = column; j < column + count; ++j) {
    T* const entries = a + j * m_;
    for (int64_t i = begin; i < end; ++i) std::swap(entries[i], entries[pivots[i] - 1]);
  }
}

template <typename T>
void PanelledLu<T>::Factor(const Panel& panel, T* a, lapack_int* pivots) const {
  lapack::Getrf(m_ - panel.first, panel.columns, a + panel.first * (m_ + 1), m_, pivots + panel.first);
  for (int64_t i = panel.first; i < panel.end(); ++i) pivots[i] += static_cast<lapack_int>(panel.first);
}

template <typename T>
void PanelledLu<T>::Update(const Panel& panel, const lapack_int* pivots, int64_t column, int64_t count, T* a) const {
  Exchange(pivots, panel.first, panel.end(), column, count, a);
  const T* const corner = a + panel.first * (m_ + 1);
  T* const top = a + column * m_ + panel.first;
  lapack::Trsm({.left = true, .lower = true, .transpose = CblasNoTrans, .unit_diagonal = true}, panel.columns, count,
               corner, m_, top, m_);
  lapack::SubtractProduct({.m = m_ - panel.end(), .n = count, .k = panel.columns}, corner + panel.columns, m_, top, m_,
                          top + panel.columns, m_);
}

template <typename T>
int64_t PanelledLu<T>::Run(T* a, lapack_int* pivots, ThreadPool& pool) const {
  const int64_t k = std::min(m_, n_);
  Factor(PanelAt(0), a, pivots);
  for (int64_t first = 0; first < k; first += kLuPanelColumns) {
    const Panel panel = PanelAt(first), next = panel.end() < k ? PanelAt(panel.end()) : Panel{panel.end(), 0};
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
  // The exchanges of later panels in what lies before them.
  pool.ParallelForBlocks(wants_lower_ ? k : 0, kLuExchangedColumns, [&](int64_t begin, int64_t end) {
    Exchange(pivots, PanelAt(begin / kLuPanelColumns * kLuPanelColumns).end(), k, begin, end - begin, a);
  });
  for (int64_t i = 0; i < k; ++i) {
    if (a[i * (m_ + 1)] == T(0)) return i + 1;
  }
  return 0;
}

template class PanelledLu<float>;
template class PanelledLu<double>;
template class PanelledLu<lapack::Complex64>;
template class PanelledLu<lapack::Complex128>;

}  // namespace tensord::cpu
