#include "backends/cpu/linalg/large/balancing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/stop_signal.h"

namespace tensord::cpu {
namespace {

// The largest exponent of a scale.
template <typename R>
constexpr int kMostBalancingExponent = std::is_same_v<R, float> ? 60 : 500;

// Not the square, in which small numbers vanish.
template <typename R>
R Size(R x) {
  return std::abs(x);
}
template <typename R>
R Size(std::complex<R> x) {
  return std::abs(x.real()) + std::abs(x.imag());
}

template <typename T>
void ExchangeLines(int64_t n, int64_t i, int64_t j, T* a) {
  if (i == j) return;
  std::swap_ranges(a + i * n, a + (i + 1) * n, a + j * n);
  for (int64_t k = 0; k < n; ++k) std::swap(a[k * n + i], a[k * n + j]);
}

}  // namespace

// counts[i] is the number of nonzero entries of row i beside the diagonal, in the columns that are left; counts[n + i]
// that of column i, likewise.
template <typename T>
typename Balancing<T>::Range Balancing<T>::Permute(T* a, int64_t* places, int64_t* counts) const {
  int64_t *const in_row = counts, *const in_column = counts + n_;
  std::fill_n(counts, 2 * n_, 0);
  for (int64_t j = 0; j < n_; ++j) {
    for (int64_t i = 0; i < n_; ++i) {
      if (i == j || a[j * n_ + i] == T(0)) continue;
      ++in_row[i];
      ++in_column[j];
    }
  }
  Range range{.first = 0, .end = n_};
  const auto move = [&](int64_t from, int64_t to) {
    places[to] = from;
    ExchangeLines(n_, from, to, a);
    std::swap(in_row[from], in_row[to]);
    std::swap(in_column[from], in_column[to]);
    for (int64_t k = 0; k < n_; ++k) {
      if (k == to) continue;
      if (a[to * n_ + k] != T(0)) --in_row[k];
      if (a[k * n_ + to] != T(0)) --in_column[k];
    }
  };
  const auto find = [&](const int64_t* in_line) {
    for (int64_t i = range.end - 1; i >= range.first; --i) {
      if (in_line[i] == 0) return i;
    }
    return int64_t{-1};
  };
  for (int64_t i = find(in_row); i >= 0 && range.end - range.first > 1; i = find(in_row)) move(i, --range.end);
  for (int64_t i = find(in_column); i >= 0 && range.end - range.first > 1; i = find(in_column)) move(i, range.first++);
  return range;
}

// Scales row and column i; true if they were too unlike each other.
template <typename T>
bool Balancing<T>::Scale(const Range& range, int64_t i, T* a, R* scale) const {
  R column = 0, row = 0;
  R largest_of_column = 0, largest_of_row = 0;  // with those that are scaled along
  for (int64_t k = 0; k < range.end; ++k) {
    const R size = Size(a[i * n_ + k]);
    if (k >= range.first) column += size;
    largest_of_column = std::max(largest_of_column, size);
  }
  for (int64_t k = range.first; k < n_; ++k) {
    const R size = Size(a[k * n_ + i]);
    if (k < range.end) row += size;
    largest_of_row = std::max(largest_of_row, size);
  }
  if (!(column > 0) || !(row > 0)) return false;
  const int exponent = (std::ilogb(row) - std::ilogb(column)) / 2;
  if (std::abs(std::ilogb(*scale) + exponent) > kMostBalancingExponent<R>) return false;
  const R factor = std::ldexp(R(1), exponent), inverse = std::ldexp(R(1), -exponent);
  constexpr R kWorthwhile = R(0.95);
  if (column * factor + row * inverse >= kWorthwhile * (column + row)) return false;
  const R most = std::ldexp(R(1), MostExponent());
  if (largest_of_column * factor > most || largest_of_row * inverse > most) return false;
  *scale *= factor;
  for (int64_t k = 0; k < range.end; ++k) a[i * n_ + k] *= factor;
  for (int64_t k = range.first; k < n_; ++k) a[k * n_ + i] *= inverse;
  return true;
}

template <typename T>
typename Balancing<T>::Range Balancing<T>::Balance(T* a, int64_t* places, R* scales, int64_t* counts) const {
  const Range range = Permute(a, places, counts);
  std::fill_n(scales, n_, R(1));
  bool changed = true;
  while (changed) {
    changed = false;
    for (int64_t i = range.first; i < range.end; ++i) {
      if (StopRequested()) return range;
      if (Scale(range, i, a, scales + i)) changed = true;
    }
  }
  return range;
}

template class Balancing<float>;
template class Balancing<double>;
template class Balancing<lapack::Complex64>;
template class Balancing<lapack::Complex128>;

}  // namespace tensord::cpu
