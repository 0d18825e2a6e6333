#include "backends/cpu/linalg/large/blocked_lu.h"

#include <algorithm>

#include "backends/cpu/machine/thread_pool.h"
#include "engine/tensor/dtype.h"

namespace tensord::cpu {
namespace {

constexpr int64_t kLeastLuSize = 128;  // below it LAPACK's calls cost as little
// Narrower chunks keep threads busy where so few are left. LU of 512 x 512 in F64 takes 1.04 times as long with half
// the width, and with twice.
constexpr int64_t kNarrowChunk = 32;
constexpr int64_t kFewChunks = 4;
constexpr int64_t kPackedTiles = 8;  // of a task that packs rows below a panel: some 100 KiB of F64

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
      panels_{.m = m, .n = n, .most_columns = kUpdatePanelColumns},
      wants_lower_(wants_lower),
      tiles_(GetGemmTiles(kDTypeOf<T>)),
      loops_(GetFactorizationLoops<T>()) {}

template <typename T>
int64_t BlockedLu<T>::scratch_bytes() const {
  return (PackedElements() + 2 * panels_.most_columns * panels_.most_columns) * static_cast<int64_t>(sizeof(T));
}

// Returns the packed size of the rows below the first panel.
template <typename T>
int64_t BlockedLu<T>::PackedElements() const {
  return PanelUpdate<T>::PackedElements(tiles_, m_ - panels_.At(0).end(), panels_.most_columns);
}

// A triangle is made while that of the panel before is read.
template <typename T>
typename BlockedLu<T>::Factors BlockedLu<T>::FactorsOf(const LuPanel& panel, char* scratch) const {
  T* const below = reinterpret_cast<T*>(scratch);
  const int64_t turn = panel.first / panels_.most_columns % 2;
  return {.triangle = below + PackedElements() + turn * panels_.most_columns * panels_.most_columns, .below = below};
}

template <typename T>
void BlockedLu<T>::CopyTriangle(const LuPanel& panel, const T* a, T* triangle) const {
  const T* const corner = a + panel.first * (m_ + 1);
  for (int64_t j = 0; j < panel.columns; ++j) {
    for (int64_t i = j + 1; i < panel.columns; ++i) triangle[i * panel.columns + j] = corner[j * m_ + i];
  }
}

template <typename T>
PanelUpdate<T> BlockedLu<T>::UpdateBelow(const LuPanel& panel, const T* a) const {
  return {.rows = m_ - panel.end(), .terms = panel.columns, .a = a + panel.first * m_ + panel.end(), .a_leading = m_};
}

template <typename T>
void BlockedLu<T>::FactorColumns(const LuPanel& panel, T* a, lapack_int* pivots) const {
  if (panel.columns <= kLuNarrowColumns) {
    int64_t rows[kLuNarrowColumns];
    loops_.factor(m_ - panel.first, panel.columns, a + panel.first * (m_ + 1), m_, rows);
    for (int64_t i = 0; i < panel.columns; ++i) {
      pivots[panel.first + i] = static_cast<lapack_int>(panel.first + rows[i] + 1);
    }
    return;
  }
  const int64_t half = (panel.columns / 2 + kLuNarrowColumns - 1) / kLuNarrowColumns * kLuNarrowColumns;
  const LuPanel left{.first = panel.first, .columns = half};
  const LuPanel right{.first = left.end(), .columns = panel.columns - half};
  FactorColumns(left, a, pivots);
  alignas(64) T triangle[kUpdatePanelColumns / 2 * kUpdatePanelColumns / 2];
  CopyTriangle(left, a, triangle);
  Update(left, {.triangle = triangle}, pivots, right.first, right.columns, a);
  FactorColumns(right, a, pivots);
  panels_.Exchange(pivots, right.first, right.end(), left.first, left.columns, a);
}

template <typename T>
void BlockedLu<T>::Update(const LuPanel& panel, const Factors& factors, const lapack_int* pivots, int64_t column,
                          int64_t count, T* a) const {
  const int64_t k = panel.columns, width = (count + 15) / 16 * 16;
  panels_.Exchange(pivots, panel.first, panel.end(), column, count, a);
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
  const int64_t k = panels_.diagonal();
  const auto factor = [&](const LuPanel& panel) {
    FactorColumns(panel, a, pivots);
    CopyTriangle(panel, a, FactorsOf(panel, scratch).triangle);
  };
  factor(panels_.At(0));
  for (int64_t first = 0; first < k; first += panels_.most_columns) {
    const LuPanel panel = panels_.At(first), next = panels_.Next(panel);
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
  if (wants_lower_) panels_.ExchangeBefore(pivots, a, pool);
  return panels_.FirstZeroPivot(a);
}

template class BlockedLu<float>;
template class BlockedLu<double>;

}  // namespace tensord::cpu
