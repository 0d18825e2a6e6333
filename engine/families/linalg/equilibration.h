#ifndef TENSORD_ENGINE_FAMILIES_LINALG_EQUILIBRATION_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_EQUILIBRATION_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {

// Powers of two by which the rows and columns of a square matrix, column-major, are divided before elimination: then no
// entry is larger than 1, and rows and columns of different sizes keep their numbers. Nearly all matrices need no
// scaling: they have none, and are eliminated as they are. Nor is there any if an entry is not finite, or one of its
// parts would vanish beside the other. A value; T is float, double or a complex of these.
template <typename T>
class Equilibration {
 public:
  Equilibration(const T* a, int64_t n) : n_(n) {
    if (IsOrdinary(a)) return;
    FindSizes(a);
    const auto is_ordinary = [](int exponent) { return std::abs(exponent) <= kOrdinary; };
    if (std::all_of(rows_.begin(), rows_.end(), is_ordinary) &&
        std::all_of(columns_.begin(), columns_.end(), is_ordinary)) {
      rows_.clear();
      return;
    }
    for (int64_t j = 0; j < n_; ++j) columns_[At(j)] = LargestInColumn(a, j);
    if (TearsApart(a)) rows_.clear();
  }

  bool is_needed() const { return !rows_.empty(); }
  // The determinant is 2 to this power times that of the divided matrix.
  int64_t exponent() const {
    if (!is_needed()) return 0;
    return std::accumulate(rows_.begin(), rows_.end(), int64_t{0}) +
           std::accumulate(columns_.begin(), columns_.end(), int64_t{0});
  }

  T Divided(T entry, int64_t row, int64_t column) const {
    if (!is_needed()) return entry;
    const int exponent = -(rows_[At(row)] + columns_[At(column)]);
    if constexpr (scalar::Complex<T>) {
      return {std::ldexp(entry.real(), exponent), std::ldexp(entry.imag(), exponent)};
    } else {
      return std::ldexp(entry, exponent);
    }
  }

 private:
  using Real = decltype(std::real(T()));
  // Products and quotients of two sizes within this are far from the ends of the range.
  static constexpr int kOrdinary = std::numeric_limits<Real>::max_exponent * 3 / 8;
  static constexpr int kNothing = std::numeric_limits<int>::min();  // of zeros

  static size_t At(int64_t i) { return static_cast<size_t>(i); }

  bool IsOrdinary(const T* a) const {
    const Real least = std::ldexp(Real(1), -kOrdinary), most = std::ldexp(Real(1), kOrdinary - 1);
    const Real* const parts = reinterpret_cast<const Real*>(a);
    bool is_ordinary = true;
    for (int64_t i = 0; i < n_ * n_ * static_cast<int64_t>(sizeof(T) / sizeof(Real)); ++i) {
      const Real size = std::abs(parts[i]);
      is_ordinary &= (size == 0) | ((size >= least) & (size <= most));
    }
    return is_ordinary;
  }

  static int ExponentOf(T entry) {
    const Real size = std::max(std::abs(std::real(entry)), std::abs(std::imag(entry)));
    return size == 0 ? kNothing : std::ilogb(size) + 1;
  }

  // Finds the sizes of rows and columns: those of their largest entries. Ordinary ones if an entry is not finite.
  void FindSizes(const T* a) {
    rows_.assign(At(n_), kNothing);
    columns_.assign(At(n_), kNothing);
    for (int64_t j = 0; j < n_; ++j) {
      for (int64_t i = 0; i < n_; ++i) {
        const T entry = a[i + j * n_];
        if (!std::isfinite(std::real(entry)) || !std::isfinite(std::imag(entry))) {
          rows_.assign(At(n_), 0);
          columns_.assign(At(n_), 0);
          return;
        }
        const int exponent = ExponentOf(entry);
        rows_[At(i)] = std::max(rows_[At(i)], exponent);
        columns_[At(j)] = std::max(columns_[At(j)], exponent);
      }
    }
    for (std::vector<int>* const sizes : {&rows_, &columns_}) {
      std::replace(sizes->begin(), sizes->end(), kNothing, 0);
    }
  }

  // When the rows are divided.
  int LargestInColumn(const T* a, int64_t column) const {
    int largest = kNothing;
    for (int64_t i = 0; i < n_; ++i) {
      const int exponent = ExponentOf(a[i + column * n_]);
      if (exponent != kNothing) largest = std::max(largest, exponent - rows_[At(i)]);
    }
    return largest == kNothing ? 0 : largest;
  }

  // Tells whether a complex entry would lose one part, and not the other.
  bool TearsApart(const T* a) const {
    if constexpr (!scalar::Complex<T>) return false;
    for (int64_t i = 0; i < n_ * n_; ++i) {
      const T divided = Divided(a[i], i % n_, i / n_);
      const bool keeps_real = Keeps(std::real(a[i]), std::real(divided));
      if (keeps_real != Keeps(std::imag(a[i]), std::imag(divided))) return true;
    }
    return false;
  }
  static bool Keeps(Real part, Real divided) { return part == 0 || std::isnormal(divided); }

  const int64_t n_;
  std::vector<int> rows_, columns_;  // exponents; no rows: not needed
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_EQUILIBRATION_H_
