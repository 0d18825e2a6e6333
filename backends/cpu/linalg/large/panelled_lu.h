#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_LU_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_LU_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/lu_panels.h"

namespace tensord::cpu {

class ThreadPool;

// LU factors with partial pivoting of one large matrix, in place, on all threads, for numbers for which BlockedLu has
// no loops. LAPACK factors a panel of columns, and BLAS updates the columns after it in chunks, a task each. The first
// of the tasks has the columns of the next panel and factors them too, while others work on the rest.
//
// Immutable after construction, so thread-safe. Run does not allocate, and gives the same bits for any number of
// threads.
template <typename T>
class PanelledLu {
 public:
  static bool Suits(int64_t m, int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<PanelledLu> Plan(int64_t m, int64_t n, bool wants_lower) {
    return Suits(m, n) ? std::make_optional(PanelledLu(m, n, wants_lower)) : std::nullopt;
  }

  // Without `wants_lower`, the rows of L are left in some order.
  PanelledLu(int64_t m, int64_t n, bool wants_lower);
  // Runs as LAPACK's getrf, pivots and info included.
  int64_t Run(T* a, lapack_int* pivots, ThreadPool& pool) const;

 private:
  void Factor(const LuPanel& panel, T* a, lapack_int* pivots) const;
  // Updates `count` columns from `column` on by the columns of the panel.
  void Update(const LuPanel& panel, const lapack_int* pivots, int64_t column, int64_t count, T* a) const;

  int64_t m_, n_;
  LuPanels panels_;
  bool wants_lower_;
};

extern template class PanelledLu<float>;
extern template class PanelledLu<double>;
extern template class PanelledLu<lapack::Complex64>;
extern template class PanelledLu<lapack::Complex128>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANELLED_LU_H_
