#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_LU_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_LU_H_

#include <cstdint>
#include <optional>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/linalg/large/lu_panels.h"
#include "backends/cpu/linalg/large/panel_factor_loops.h"
#include "backends/cpu/linalg/large/panel_update.h"
#include "backends/cpu/matmul/tiles.h"

namespace tensord::cpu {

class ThreadPool;

// LU factors with partial pivoting of one large matrix of F32 or F64, in place, on all threads. Right-looking: a panel
// of columns is factored by halves [Toledo, Locality of reference in LU decomposition with partial pivoting, 1997].
// Rows below its triangle are packed, and the columns after it are updated in chunks, a task each. The first task has
// the columns of the next panel and factors them too, while others work on the rest.
//
// Immutable after construction, so thread-safe. Run does not allocate, and gives the same bits for any number of
// threads.
template <typename T>
class BlockedLu {
 public:
  static bool Suits(int64_t m, int64_t n);
  // Plans it; nothing if another way is as fast.
  static std::optional<BlockedLu> Plan(int64_t m, int64_t n, bool wants_lower) {
    return Suits(m, n) ? std::make_optional(BlockedLu(m, n, wants_lower)) : std::nullopt;
  }

  // Without `wants_lower`, the rows of L are left in some order.
  BlockedLu(int64_t m, int64_t n, bool wants_lower);
  int64_t scratch_bytes() const;
  // Runs as LAPACK's getrf, pivots and info included. `scratch` is aligned to 64.
  int64_t Run(T* a, lapack_int* pivots, char* scratch, ThreadPool& pool) const;

 private:
  // The data of a panel that updates read beside its pivots.
  struct Factors {
    T* triangle;         // the unit lower one, by rows
    T* below = nullptr;  // what is below it, as PanelUpdate packs it; null: not packed
  };

  int64_t PackedElements() const;
  Factors FactorsOf(const LuPanel& panel, char* scratch) const;
  void FactorColumns(const LuPanel& panel, T* a, lapack_int* pivots) const;
  void CopyTriangle(const LuPanel& panel, const T* a, T* triangle) const;
  PanelUpdate<T> UpdateBelow(const LuPanel& panel, const T* a) const;
  // Updates `count` columns from `column` on by the columns of the panel.
  void Update(const LuPanel& panel, const Factors& factors, const lapack_int* pivots, int64_t column, int64_t count,
              T* a) const;

  int64_t m_, n_;
  LuPanels panels_;
  bool wants_lower_;
  GemmTiles tiles_;
  FactorizationLoops<T> loops_;
};

extern template class BlockedLu<float>;
extern template class BlockedLu<double>;

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_BLOCKED_LU_H_
