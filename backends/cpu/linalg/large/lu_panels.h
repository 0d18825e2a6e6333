#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_PANELS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_PANELS_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// Columns that an LU factorization factors at once.
struct LuPanel {
  int64_t first = 0;
  int64_t columns = 0;
  int64_t end() const { return first + columns; }
};

// The panels of an m x n matrix that lies by columns, and the work on a panel that is the same for all numbers. Pivots
// are LAPACK's: row i + 1, counted from one.
struct LuPanels {
  int64_t m = 0;
  int64_t n = 0;
  int64_t most_columns = 0;

  int64_t diagonal() const { return std::min(m, n); }
  LuPanel At(int64_t first) const { return {.first = first, .columns = std::min(most_columns, diagonal() - first)}; }
  // Returns the panel after this one; it has no columns behind the last one.
  LuPanel Next(const LuPanel& panel) const { return panel.end() < diagonal() ? At(panel.end()) : LuPanel{panel.end()}; }

  // Exchanges rows in `count` columns from `column` on, as the pivots from `begin` to `end` say.
  template <typename T>
  void Exchange(const lapack_int* pivots, int64_t begin, int64_t end, int64_t column, int64_t count, T* a) const {
    for (int64_t j = column; j < column + count; ++j) {
      T* const entries = a + j * m;
      for (int64_t i = begin; i < end; ++i) std::swap(entries[i], entries[pivots[i] - 1]);
    }
  }
  // Exchanges the rows of L in each panel as the panels behind it say.
  template <typename T>
  void ExchangeBefore(const lapack_int* pivots, T* a, ThreadPool& pool) const {
    constexpr int64_t kColumnsATask = 32;  // rows are exchanged in them: a few µs for each exchange
    pool.ParallelForBlocks(diagonal(), kColumnsATask, [&](int64_t begin, int64_t end) {
      Exchange(pivots, At(begin / most_columns * most_columns).end(), diagonal(), begin, end - begin, a);
    });
  }
  // LAPACK's info: which pivot is zero, counted from one; 0 if none is.
  template <typename T>
  int64_t FirstZeroPivot(const T* a) const {
    for (int64_t i = 0; i < diagonal(); ++i) {
      if (a[i * (m + 1)] == T(0)) return i + 1;
    }
    return 0;
  }
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_LU_PANELS_H_
