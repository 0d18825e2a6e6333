#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_BALANCING_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_BALANCING_H_

#include <cstdint>
#include <limits>
#include <utility>

#include "backends/cpu/linalg/lapack/lapack.h"

namespace tensord::cpu {

// The balancing of a general matrix before its eigenvalues are sought [Parlett and Reinsch, Balancing a matrix for
// calculation of eigenvalues and eigenvectors, 1969], as LAPACK's gebal does it. Rows and columns that are eigenvalues
// already go to the matrix's ends; the rest are scaled by powers of two until their norms are alike. The first step
// takes a time of n², where LAPACK may take n³, and stops between passes.
//
// Immutable, so thread-safe. No function allocates.
template <typename T>
class Balancing {
 public:
  using R = lapack::Real<T>;
  // The rows and columns that are left: [first, end).
  struct Range {
    int64_t first, end;
  };

  // Binary exponent that the matrix's numbers may have at most, before as after: their sums are numbers.
  static constexpr int MostExponent() { return std::numeric_limits<R>::max_exponent - 32; }

  explicit Balancing(int64_t n) : n_(n) {}
  // Balances a matrix. All arrays have n elements, `counts` 2n. `places`: row and column i were exchanged with those of
  // places[i], from the ends inwards. `counts` is scratch.
  Range Balance(T* a, int64_t* places, R* scales, int64_t* counts) const;
  // Eigenvectors of the balanced matrix become those of the matrix: the rows of one.
  template <typename V>
  void Undo(const Range& range, const int64_t* places, const R* scales, V* vector) const;

 private:
  Range Permute(T* a, int64_t* places, int64_t* counts) const;
  bool Scale(const Range& range, int64_t i, T* a, R* scale) const;

  int64_t n_;
};

extern template class Balancing<float>;
extern template class Balancing<double>;
extern template class Balancing<lapack::Complex64>;
extern template class Balancing<lapack::Complex128>;

template <typename T>
template <typename V>
void Balancing<T>::Undo(const Range& range, const int64_t* places, const R* scales, V* vector) const {
  for (int64_t i = range.first; i < range.end; ++i) vector[i] *= scales[i];
  for (int64_t i = range.first - 1; i >= 0; --i) std::swap(vector[i], vector[places[i]]);
  for (int64_t i = range.end; i < n_; ++i) std::swap(vector[i], vector[places[i]]);
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_BALANCING_H_
