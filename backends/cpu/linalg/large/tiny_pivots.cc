#include "backends/cpu/linalg/large/tiny_pivots.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/linalg/lapack/number_parts.h"
#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

template <typename T>
lapack::Real<T> Magnitude(T x) {
  if constexpr (lapack::kIsComplex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());  // as LAPACK chooses pivots
  } else {
    return std::abs(x);
  }
}

}  // namespace

template <typename T>
bool HasTinyPivot(const T* a, int64_t leading, int64_t k) {
  bool has = false;
  for (int64_t i = 0; i < k; ++i) {
    const auto magnitude = Magnitude(a[i * (leading + 1)]);
    has |= magnitude != 0 && magnitude < std::numeric_limits<lapack::Real<T>>::min();
  }
  return has;
}

template <typename T>
int64_t FactorByDivision(int64_t m, int64_t n, T* a, lapack_int* pivots) {
  int64_t info = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    if (StopRequested()) return 0;
    T* const column = a + k * m;
    int64_t pivot = k;
    for (int64_t i = k + 1; i < m; ++i) {
      if (Magnitude(column[i]) > Magnitude(column[pivot])) pivot = i;
    }
    pivots[k] = static_cast<lapack_int>(pivot + 1);
    if (column[pivot] == T(0)) {
      if (info == 0) info = k + 1;
      continue;
    }
    if (pivot != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(a[j * m + k], a[j * m + pivot]);
    }
    for (int64_t i = k + 1; i < m; ++i) column[i] /= column[k];
    for (int64_t j = k + 1; j < n && !StopRequested(); ++j) {
      T* const other = a + j * m;
      for (int64_t i = k + 1; i < m; ++i) other[i] -= column[i] * other[k];
    }
  }
  return info;
}

template <typename T>
void SolveByDivision(const lapack::Triangle& triangle, int64_t m, int64_t n, const T* a, int64_t lda, T* b,
                     int64_t ldb) {
  // X·op(A) = B is op(A)^T·X^T = B^T.
  const bool is_transposed = (triangle.transpose != CblasNoTrans) == triangle.left;
  const bool is_lower = triangle.lower != is_transposed;
  const int64_t rows = triangle.left ? m : n, sides = triangle.left ? n : m;
  const int64_t step = triangle.left ? 1 : ldb, side_step = triangle.left ? ldb : 1;
  const auto element = [&](int64_t i, int64_t j) {
    const T x = is_transposed ? a[i * lda + j] : a[j * lda + i];
    return triangle.transpose == CblasConjTrans ? Conjugate(x) : x;
  };
  for (int64_t side = 0; side < sides; ++side) {
    T* const x = b + side * side_step;
    for (int64_t k = 0; k < rows && !StopRequested(); ++k) {
      const int64_t j = is_lower ? k : rows - 1 - k;
      T& solved = x[j * step];
      if (!triangle.unit_diagonal) solved /= element(j, j);
      const int64_t begin = is_lower ? j + 1 : 0, end = is_lower ? rows : j;
      for (int64_t i = begin; i < end; ++i) x[i * step] -= element(i, j) * solved;
    }
  }
}

#define TENSORD_TINY_PIVOTS(T)                                                                                         \
  template bool HasTinyPivot(const T* a, int64_t leading, int64_t k);                                                  \
  template int64_t FactorByDivision(int64_t m, int64_t n, T* a, lapack_int* pivots);                                   \
  template void SolveByDivision(const lapack::Triangle& triangle, int64_t m, int64_t n, const T* a, int64_t lda, T* b, \
                                int64_t ldb);
TENSORD_TINY_PIVOTS(float)
TENSORD_TINY_PIVOTS(double)
TENSORD_TINY_PIVOTS(lapack::Complex64)
TENSORD_TINY_PIVOTS(lapack::Complex128)
#undef TENSORD_TINY_PIVOTS

}  // namespace tensord::cpu
