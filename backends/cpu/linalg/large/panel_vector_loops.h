#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_VECTOR_LOOPS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_VECTOR_LOOPS_H_

#include <complex>
#include <cstdint>

namespace tensord::cpu {

// The products of a matrix with a vector that reductions to two diagonals are made of, for the machine's best
// instruction set. T is F32, F64, C64 or C128; columns are dense and lie `leading` apart. `offset` counts elements from
// an aligned place to `a`: where columns begin at such places too, vectors are read from there. The order of sums
// follows from it, not from where things lie.
template <typename T>
struct ReductionLoops {
  // y += A·x for columns `begin` to `end` of the lower triangle of a Hermitian n×n matrix: each number counts on both
  // sides of the diagonal and is read once. Imaginary parts of the diagonal are ignored.
  void (*add_hermitian)(int64_t n, int64_t begin, int64_t end, const T* a, int64_t offset, int64_t leading, const T* x,
                        T* y);
  // y += A·x for m×k A.
  void (*add_product)(int64_t m, int64_t k, const T* a, int64_t offset, int64_t leading, const T* x, T* y);
  // y = A^T·x; nothing is conjugated.
  void (*multiply_transposed)(int64_t m, int64_t k, const T* a, int64_t offset, int64_t leading, const T* x, T* y);
};

template <typename T>
ReductionLoops<T> GetReductionLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_PANEL_VECTOR_LOOPS_H_
