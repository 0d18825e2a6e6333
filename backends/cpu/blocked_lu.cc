#include "backends/cpu/blocked_lu.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/thread_pool.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastLuSize = 128;  // below it LAPACK's calls cost as little
constexpr int64_t kNarrowChunk = 32;
constexpr int64_t kFewChunks = 4;
constexpr int64_t kExchangedColumns = 32;
constexpr int64_t kPackedTiles = 8;

}  // namespace

template <typename T>
bool BlockedLu<T>::Suits(int64_t m, int64_t n) {
  const GemmTiles tiles = GetGemmTiles(kDTypeOf<T>);
  return std::min(m, n) >= kLeastLuSize && tiles.rows > 0 && tiles.rows <= kUpdateMostTileRows;
}

template <typename T>
BlockedLu<T>::BlockedLu(int64_t m, int64_t n, bool wants_lower)
    : m_(m),
      n_(n),
      wants_lower_(wants_lower),
      most_columns_(kUpdatePanelColumns),
      tiles_(GetGemmTiles(kDTypeOf<T>)),
      loops_(GetFactorizationLoops<T>()) {}

template <typename T>
int64_t BlockedLu<T>::scratch_bytes() const {
  return (PackedElements() + 2 * most_columns_ * most_columns_) * static_cast<int64_t>(sizeof(T));
}

// What is below the first panel.
template <typename T>
int64_t BlockedLu<T>::PackedElements() const {
  return PanelUpdate<T>::PackedElements(tiles_, m_ - PanelAt(0).end(), most_columns_);
}

// A triangle is made while that of the panel before is read.
template <typename T>
typename BlockedLu<T>::Factors BlockedLu<T>::FactorsOf(const Panel& panel, char* scratch) const {
  T* const below = reinterpret_cast<T*>(scratch);
  const int64_t turn = panel.first / most_columns_ % 2;
  return {.triangle = below + PackedElements() + turn * most_columns_ * most_columns_, .below = below};
}

template <typename T>
typename BlockedLu<T>::Panel BlockedLu<T>::PanelAt(int64_t first) const {
  return {.first = first, .columns = std::min(most_columns_, std::min(m_, n_) - first)};
}

template <typename T>
void BlockedLu<T>::Exchange(const lapack_int* pivots, int64_t begin, int64_t end, int64_t column, int64_t count,
                            T* a) const {
  for (int64_t j = column; j < column + count; ++j) {
    T* const entries = a + j * m_;
    for (int64_t i = begin; i < end; ++i) std::swap(entries[i], entries[pivots[i] - 1]);
  }
}

template <typename T>
void BlockedLu<T>::CopyTriangle(const Panel& panel, const T* a, T* triangle) const {
  const T* const corner = a + panel.first * (m_ + 1);
  for (int64_t j = 0; j < panel.columns; ++j) {
    for (int64_t i = j + 1; i < panel.columns; ++i) triangle[i * panel.columns + j] = corner[j * m_ + i];
  }
}

template <typename T>
PanelUpdate<T> BlockedLu<T>::UpdateBelow(const Panel& panel, const T* a) const {
  return {.rows = m_ - panel.end(), .terms = panel.columns, .a = a + panel.first * m_ + panel.end(), .a_leading = m_};
}

template <typename T>
void BlockedLu<T>::FactorColumns(const Panel& panel, T* a, lapack_int* pivots) const {
  if (panel.columns <= kLuNarrowColumns) {
    int64_t rows[kLuNarrowColumns];
    loops_.factor(m_ - panel.first, panel.columns, a + panel.first * (m_ + 1), m_, rows);
    for (int64_t i = 0; i < panel.columns; ++i) {
      pivots[panel.first + i] = static_cast<lapack_int>(panel.first + rows[i] + 1);
    }
    return;
  }
  const int64_t half = (panel.columns / 2 + kLuNarrowColumns - 1) / kLuNarrowColumns * kLuNarrowColumns;
  const Panel left{.first = panel.first, .columns = half};
  const Panel right{.first = left.end(), .columns = panel.columns - half};
  FactorColumns(left, a, pivots);
  alignas(64) T triangle[kUpdatePanelColumns / 2 * kUpdatePanelColumns / 2];
  CopyTriangle(left, a, triangle);
  Update(left, {.triangle = triangle}, pivots, right.first, right.columns, a);
  FactorColumns(right, a, pivots);
  Exchange(pivots, right.first, right.end(), left.first, left.columns, a);
}

template <typename T>
void BlockedLu<T>::Update(const Panel& panel, const Factors& factors, const lapack_int* pivots, int64_t column,
                          int64_t count, T* a) const {
  const int64_t k = panel.columns, width = (count + 15) / 16 * 16;
  Exchange(pivots, panel.first, panel.end(), column, count, a);
  // Rows side by side, as many as fill vectors.
  alignas(64) T above[kUpdatePanelColumns * kUpdateChunkColumns];
  T* const top = a + column * m_ + panel.first;
  for (int64_t j = 0; j < width; ++j) {
    for (int64_t i = 0; i < k; ++i) above[i * width + j] = j < count ? top[j * m_ + i] : T(0);
  }
  loops_.solve(k, factors.triangle, nullptr, width, above);
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t i = 0; i < k; ++i) top[j * m_ + i] = above[i * width + j];
  }
  alignas(64) T negated[kUpdatePanelColumns * kUpdateChunkColumns];
  for (int64_t panel_column = 0; panel_column < count; panel_column += tiles_.columns) {
    T* const into = negated + panel_column * k;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < tiles_.columns; ++j) into[i * tiles_.columns + j] = -above[i * width + panel_column + j];
    }
  }
  PanelUpdate<T> below = UpdateBelow(panel, a);
  below.packed_a = factors.below;
  below.columns = count;
  below.b = negated;
  below.c = a + column * m_ + panel.end();
  below.c_leading = m_;
  below.Run(tiles_);
}

template <typename T>
int64_t BlockedLu<T>::Run(T* a, lapack_int* pivots, char* scratch, ThreadPool& pool) const {
  const int64_t k = std::min(m_, n_);
  const auto factor = [&](const Panel& panel) {
    FactorColumns(panel, a, pivots);
    CopyTriangle(panel, a, FactorsOf(panel, scratch).triangle);
  };
  factor(PanelAt(0));
  for (int64_t first = 0; first < k; first += most_columns_) {
    const Panel panel = PanelAt(first), next = panel.end() < k ? PanelAt(panel.end()) : Panel{panel.end(), 0};
    const Factors factors = FactorsOf(panel, scratch);
    const PanelUpdate<T> below = UpdateBelow(panel, a);
    const auto pack = [&](int64_t begin, int64_t end) {
      below.Pack(tiles_, begin, end - begin, factors.below + begin * panel.columns);
    };
    if (!pool.ParallelForBlocks(panel.end() < n_ ? below.rows : 0, kPackedTiles * tiles_.rows, pack)) return -1;
    const int64_t rest = n_ - next.end();
    const int64_t chunk = rest < kFewChunks * kUpdateChunkColumns ? kNarrowChunk : kUpdateChunkColumns;
    const auto update = [&](int64_t task) {
      if (task > 0) {
        const int64_t column = next.end() + (task - 1) * chunk;
        return Update(panel, factors, pivots, column, std::min(chunk, n_ - column), a);
      }
      if (next.columns == 0) return;
      Update(panel, factors, pivots, next.first, next.columns, a);
      factor(next);
    };
    if (!pool.ParallelFor(1 + (rest + chunk - 1) / chunk, update)) return -1;
  }
  // The exchanges of later panels in what lies before them.
  pool.ParallelForBlocks(wants_lower_ ? k : 0, kExchangedColumns, [&](int64_t begin, int64_t end) {
    Exchange(pivots, PanelAt(begin / most_columns_ * most_columns_).end(), k, begin, end - begin, a);
  });
  for (int64_t i = 0; i < k; ++i) {
    if (a[i * (m_ + 1)] == T(0)) return i + 1;
  }
  return 0;
}

template class BlockedLu<float>;
template class BlockedLu<double>;

}  // namespace tensord::cpu
