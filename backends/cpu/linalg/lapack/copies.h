#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_COPIES_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_COPIES_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/machine/thread_pool.h"

namespace tensord::cpu {

// Work around LAPACK's calls: parts of column-major matrices are copied, cleared and inspected.

// Copies the lower triangle of an m×n matrix, from the `below`-th diagonal under the main one on. Entries above stay.
template <typename T>
void CopyLower(const T* from, int64_t from_rows, int64_t below, int64_t m, int64_t n, T* into) {
  for (int64_t j = 0; j < std::min(m - below, n); ++j) {
    const int64_t first = j + below;
    std::copy_n(from + j * from_rows + first, m - first, into + j * m + first);
  }
}

// The upper triangle of the first m rows of a matrix; zero below.
template <typename T>
void CopyUpperClearLower(const T* from, int64_t from_rows, int64_t m, int64_t n, T* into) {
  for (int64_t j = 0; j < n; ++j) {
    const int64_t kept = std::min(j + 1, m);
    std::copy_n(from + j * from_rows, kept, into + j * m);
    std::fill_n(into + j * m + kept, m - kept, T(0));
  }
}

template <typename T>
void ClearAboveDiagonal(int64_t m, int64_t n, T* matrix) {
  for (int64_t j = 1; j < n; ++j) std::fill_n(matrix + j * m, std::min(j, m), T(0));
}

template <typename T>
void ClearBelowDiagonal(int64_t m, int64_t n, T* matrix) {
  for (int64_t j = 0; j < std::min(m - 1, n); ++j) std::fill_n(matrix + j * m + j + 1, m - j - 1, T(0));
}

template <typename T>
void SetDiagonal(int64_t m, int64_t n, T value, T* matrix) {
  for (int64_t j = 0; j < std::min(m, n); ++j) matrix[j * m + j] = value;
}

inline bool AreFinite(const float* numbers, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // all of its bits: infinite, or no number
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    found |= (std::bit_cast<uint32_t>(numbers[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return found == 0;
}
inline bool AreFinite(const double* numbers, int64_t count) {
  constexpr uint64_t kExponent = 0x7ff0000000000000;  // as above
  uint64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    found |= (std::bit_cast<uint64_t>(numbers[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return found == 0;
}
template <typename R>
bool AreFinite(const std::complex<R>* numbers, int64_t count) {
  return AreFinite(reinterpret_cast<const R*>(numbers), 2 * count);
}
// Copies the columns of a matrix on all threads, and says whether they are finite; no where the work is to be left.
template <typename T>
bool CopyAndAreFinite(const T* from, int64_t rows, int64_t columns, T* into, ThreadPool& pool) {
  constexpr int64_t kTaskEntries = 1 << 14;  // 128 KiB of F64, some 10 µs
  std::atomic<bool> are_finite{true};
  const auto copy = [&](int64_t begin, int64_t end) {
    std::copy(from + begin * rows, from + end * rows, into + begin * rows);
    if (!AreFinite(into + begin * rows, (end - begin) * rows)) are_finite.store(false, std::memory_order_relaxed);
  };
  return pool.ParallelForBlocks(columns, std::max<int64_t>(1, kTaskEntries / rows), copy) &&
         are_finite.load(std::memory_order_relaxed);
}
// The lower triangle alone.
template <typename T>
bool IsLowerFinite(const T* matrix, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    if (!AreFinite(matrix + j * n + j, n - j)) return false;
  }
  return true;
}

// Tells whether the largest number is so far from the ends of the format that its square, and products of some squares,
// are neither 0 nor infinite.
template <typename R>
bool IsOrdinary(R largest) {
  constexpr bool kIsSingle = std::is_same_v<R, float>;
  return largest >= (kIsSingle ? R(1e-12) : R(1e-100)) && largest <= (kIsSingle ? R(1e12) : R(1e100));
}
template <typename R>
R LargestOf(const R* numbers, int64_t count) {
  R largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(numbers[i]));
  return largest;
}
template <typename R>
R LargestOf(const std::complex<R>* numbers, int64_t count) {
  return LargestOf(reinterpret_cast<const R*>(numbers), 2 * count);
}
template <typename T>
lapack::Real<T> LargestOfLower(const T* matrix, int64_t n) {
  lapack::Real<T> largest = 0;
  for (int64_t j = 0; j < n; ++j) largest = std::max(largest, LargestOf(matrix + j * n + j, n - j));
  return largest;
}

// Returns the power of two that takes numbers to an ordinary scale, exactly but for numbers that vanish beside the
// largest; 1 if they have that scale already, or are zero.
template <typename R>
R ScaleToOrdinary(R largest) {
  constexpr int kMostExponent = std::is_same_v<R, float> ? 120 : 1000;
  if (largest == 0 || IsOrdinary(largest)) return 1;
  return std::ldexp(R(1), std::clamp(-std::ilogb(largest), -kMostExponent, kMostExponent));
}

// Multiplies with a power of two.
template <typename R>
void ScaleBy(int exponent, R* numbers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) numbers[i] = std::scalbn(numbers[i], exponent);
}

// Undoes a scale of values.
template <typename R>
void Divide(R* values, int64_t count, R scale) {
  if (scale == 1) return;
  for (int64_t i = 0; i < count; ++i) values[i] /= scale;
}

template <typename T>
T NaN() {
  constexpr lapack::Real<T> kNaN = std::numeric_limits<lapack::Real<T>>::quiet_NaN();
  if constexpr (lapack::kIsComplex<T>) {
    return T(kNaN, kNaN);
  } else {
    return kNaN;
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_COPIES_H_
