#include "backends/cpu/linalg/large/panelled_geqrf.h"

#include <algorithm>
#include <utility>

#include "engine/base/stop_signal.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kGeqrfPanelColumns = 32;            // what LAPACK factors column by column
constexpr int64_t kLeastPanelledSize = 128;           // below it one call costs as little,
constexpr int64_t kMostCallSteps = int64_t{1} << 28;  // unless a side is so long that it takes a good part of a second

// Returns the columns of a panel, fewer for long columns: a panel is one call.
int64_t PanelColumns(int64_t rows) {
  int64_t columns = kGeqrfPanelColumns;
  while (columns > 1 && rows * columns * columns > 4 * kMostCallSteps) columns /= 2;
  return columns;
}

}  // namespace

template <typename T>
bool PanelledGeqrf<T>::Suits(int64_t m, int64_t n, int64_t q_columns) {
  const int64_t few = std::min(m, n);
  return few >= kLeastPanelledSize || m * std::max(n, q_columns) * few > kMostCallSteps;
}

template <typename T>
PanelledGeqrf<T>::PanelledGeqrf(int64_t m, int64_t n) : m_(m), n_(n) {
  const int64_t k = std::min(m, n), most_columns = PanelColumns(m);
  int64_t reflect_bytes = 0;
  for (int64_t first = 0; first < k; first += most_columns) {
    Panel panel{.first = first, .columns = std::min(most_columns, k - first), .update = {}};
    const int64_t others = n - first - panel.columns;
    if (others > 0) {
      panel.update = BlockReflectors(kDTypeOf<T>, {.length = m - first,
                                                   .count = panel.columns,
                                                   .others = others,
                                                   .transposes = true,
                                                   .v_leading = m,
                                                   .c_leading = m});
      reflect_bytes = std::max(reflect_bytes, panel.update.scratch_bytes());
    }
    work_size_ =
        std::max(work_size_, lapack::Geqrf(m - first, panel.columns, static_cast<T*>(nullptr), nullptr, nullptr, 0));
    panels_.push_back(std::move(panel));
  }
  // A panel and the columns after it take turns.
  const int64_t panel_bytes = (work_size_ + m * most_columns) * static_cast<int64_t>(sizeof(T));
  work_ = layout_.Add<char>(std::max(panel_bytes, reflect_bytes));
}

template <typename T>
int64_t PanelledGeqrf<T>::Run(T* a, T* tau, char* scratch, ThreadPool& pool) const {
  T* const work = reinterpret_cast<T*>(scratch + work_);
  for (const Panel& panel : panels_) {
    if (StopRequested()) return 0;
    // LAPACKE's panels are dense.
    const int64_t rows = m_ - panel.first;
    T* const corner = a + panel.first * (m_ + 1);
    T* const dense = work + work_size_;
    for (int64_t j = 0; j < panel.columns; ++j) std::copy_n(corner + j * m_, rows, dense + j * rows);
    if (const int64_t info = lapack::Geqrf(rows, panel.columns, dense, tau + panel.first, work, work_size_);
        info != 0) {
      return info;
    }
    for (int64_t j = 0; j < panel.columns; ++j) std::copy_n(dense + j * rows, rows, corner + j * m_);
    if (panel.first + panel.columns == n_) continue;
    panel.update.Apply(corner, tau + panel.first, corner + panel.columns * m_, scratch + work_, pool);
  }
  return 0;
}

template class PanelledGeqrf<float>;
template class PanelledGeqrf<double>;
template class PanelledGeqrf<lapack::Complex64>;
template class PanelledGeqrf<lapack::Complex128>;

}  // namespace tensord::cpu
