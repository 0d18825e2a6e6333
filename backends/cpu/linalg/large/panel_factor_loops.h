#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_FACTOR_LOOPS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_FACTOR_LOOPS_H_

#include <cstdint>

namespace tensord::cpu {

// Columns that are factored one by one, while all of them stay in the nearest cache.
inline constexpr int64_t kLuNarrowColumns = 8;

// The narrow parts of factorizations, for the machine's best instruction set.
template <typename T>
struct FactorizationLoops {
  // LU with partial pivoting: factors up to kLuNarrowColumns columns of at least as many rows in place; row i was
  // exchanged with row rows[i], counted from 0. A pivot of zero leaves its column as it is.
  void (*factor)(int64_t m, int64_t columns, T* a, int64_t leading, int64_t* rows);
  // Solves L·X = B in place of B. L, lower triangular, and B have their rows side by side: L's lie n apart, B's are
  // `width` long, a multiple of 16, and lie as far apart. `inverses` of L's diagonal; null if it is all ones.
  void (*solve)(int64_t n, const T* l, const T* inverses, int64_t width, T* b);
};

template <typename T>
FactorizationLoops<T> GetFactorizationLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_FACTOR_LOOPS_H_
