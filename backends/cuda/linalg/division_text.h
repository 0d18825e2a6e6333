#ifndef TENSORD_BACKENDS_CUDA_LINALG_DIVISION_TEXT_H_
#define TENSORD_BACKENDS_CUDA_LINALG_DIVISION_TEXT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/base/rounding.h"

// Text of functions by which a block factors a matrix, or solves a system, by division, one column after the other.
// Libraries multiply by reciprocals of pivots, and the reciprocal of a subnormal pivot is infinite.

namespace tensord::cuda {

// The launches that share the columns of such a matrix, for a large one takes a block minutes.
struct DivisionTurns {
  int64_t count = 1;
  int64_t columns = 0;  // of a launch; the last has what is left

  // Returns the blocks that a processor has one after the other, as far as they do not run at once.
  static double BlocksInTurn(int64_t blocks, int64_t processors) {
    return std::max(1., static_cast<double>(blocks) / static_cast<double>(processors));
  }
  // `steps` of a thread in all, and at most so many in a launch.
  static DivisionTurns Of(int64_t columns, double steps, int64_t most_steps) {
    const double wanted = std::ceil(steps / static_cast<double>(most_steps));
    const auto count = static_cast<int64_t>(std::clamp(wanted, 1., static_cast<double>(std::max<int64_t>(columns, 1))));
    const int64_t of_launch = std::max<int64_t>(1, CeilDiv(columns, count));
    return {.count = std::max<int64_t>(1, CeilDiv(columns, of_launch)), .columns = of_launch};
  }
};

inline constexpr char kDivisionText[] = R"(
// Tells all threads of the block whether one of the first k diagonal entries is subnormal. Zeros do not count.
__device__ inline bool HasTinyPivot(const T* a, i64 leading, i64 k) {
  __shared__ int has;
  __syncthreads();
  if (threadIdx.x == 0) has = 0;
  __syncthreads();
  for (i64 i = threadIdx.x; i < k; i += kThreads) {
    const R size = Magnitude(a[i * (leading + 1)]);
    if (size != 0 && (f64)size < (kIsSingle ? 0x1p-126 : 0x1p-1022)) atomicOr(&has, 1);
  }
  __syncthreads();
  return has != 0;
}

// LU factors with partial pivoting of m x n numbers in their place, with LAPACK's pivots and info, which thread 0
// writes: the steps from `first` to `last` of min(m, n), behind those before them.
__device__ inline void FactorByDivision(i64 m, i64 n, T* a, i64* pivots, int* info, i64 first, i64 last) {
  __shared__ i64 best[kThreads];
  if (threadIdx.x == 0 && first == 0) *info = 0;
  for (i64 k = first; k < last && k < (m < n ? m : n); ++k) {
    T* column = a + k * m;
    i64 mine = k;
    for (i64 r = k + threadIdx.x; r < m; r += kThreads) {
      if (Magnitude(column[r]) > Magnitude(column[mine])) mine = r;
    }
    best[threadIdx.x] = mine;
    __syncthreads();
    i64 pivot = k;
    for (int t = 0; t < kThreads; ++t) {
      const R size = Magnitude(column[best[t]]), most = Magnitude(column[pivot]);
      if (size > most || (size == most && best[t] < pivot)) pivot = best[t];
    }
    const bool is_zero = IsZero(column[pivot]);
    __syncthreads();
    if (threadIdx.x == 0) {
      pivots[k] = pivot + 1;
      if (is_zero && *info == 0) *info = (int)(k + 1);
    }
    if (is_zero) continue;
    for (i64 c = threadIdx.x; c < n && pivot != k; c += kThreads) {
      const T x = a[c * m + k];
      a[c * m + k] = a[c * m + pivot];
      a[c * m + pivot] = x;
    }
    __syncthreads();
    for (i64 r = k + 1 + threadIdx.x; r < m; r += kThreads) column[r] = Over(column[r], column[k]);
    __syncthreads();
    for (i64 c = k + 1 + threadIdx.x; c < n; c += kThreads) {
      T* other = a + c * m;
      for (i64 r = k + 1; r < m; ++r) other[r] = MinusProduct(other[r], column[r], other[k]);
    }
    __syncthreads();
  }
  __syncthreads();
}

// A triangular system: as it is in the attributes of TriangularSolve.
struct Triangle {
  bool left, lower, transposed, conjugated, unit;
};

// Solves op(A) X = B or X op(A) = B in the place of the m x n numbers b, with a side a thread: the steps from `first` to
// `last` for the sides from `begin` to `end`.
__device__ inline void SolveByDivision(Triangle t, i64 m, i64 n, const T* a, T* b, i64 begin, i64 end, i64 first,
                                       i64 last) {
  const bool turned = t.transposed == t.left, lower = t.lower != turned;
  const i64 rows = t.left ? m : n, step = t.left ? 1 : m, side_step = t.left ? m : 1;
  for (i64 side = begin + threadIdx.x; side < end; side += kThreads) {
    T* x = b + side * side_step;
    for (i64 k = first; k < last && k < rows; ++k) {
      const i64 j = lower ? k : rows - 1 - k;
      T solved = x[j * step];
      if (!t.unit) solved = Over(solved, t.conjugated ? Conj(a[j * rows + j]) : a[j * rows + j]);
      x[j * step] = solved;
      for (i64 r = lower ? j + 1 : 0; r < (lower ? rows : j); ++r) {
        const T entry = turned ? a[r * rows + j] : a[j * rows + r];
        x[r * step] = MinusProduct(x[r * step], t.conjugated ? Conj(entry) : entry, solved);
      }
    }
  }
  __syncthreads();
}
)";

// A turn of EachByBlockInTurns: factors matrix i of kM x kN again where the library's factors have a tiny pivot. Of
// kFactorColumns columns a turn; `is_divided` keeps the answer for the next turns.
inline constexpr char kDivideFactors[] = R"(    T* packed = factors + i * kM * kN;
    if (turn == 0) {
      const bool is_tiny = HasTinyPivot(packed, kM, kK);
      if (threadIdx.x == 0) is_divided[i] = is_tiny;
      for (i64 e = threadIdx.x; e < kM * kN && is_tiny; e += kThreads) packed[e] = a[i * kM * kN + e];
      __syncthreads();
    }
    if (is_divided[i]) {
      const i64 first = turn * kFactorColumns;
      FactorByDivision(kM, kN, packed, pivots + i * kK, infos + i, first, first + kFactorColumns);
    })";

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_DIVISION_TEXT_H_
