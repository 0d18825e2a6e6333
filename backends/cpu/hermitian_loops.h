#ifndef TENSORD_BACKENDS_CPU_HERMITIAN_LOOPS_H_
#define TENSORD_BACKENDS_CPU_HERMITIAN_LOOPS_H_

#include <complex>
#include <cstdint>

namespace tensord::cpu {

// Products of a Hermitian matrix with a vector in parts, for the machine's best instruction set. T is F32, F64, C64 or
// C128.
template <typename T>
struct HermitianLoops {
  // y += A·x of what columns `begin` to `end` of a Hermitian n×n matrix's lower triangle stand for, on both sides of
  // the diagonal, whose imaginary parts are not looked at. Each number is read once. `offset` counts elements from an
  // aligned place to `a`: where columns begin at such places too, vectors are read from there. The order of sums
  // follows from it, not from where things lie.
  void (*add_hermitian)(int64_t n, int64_t begin, int64_t end, const T* a, int64_t offset, int64_t leading, const T* x,
                        T* y);
};

template <typename T>
HermitianLoops<T> GetHermitianLoops();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_HERMITIAN_LOOPS_H_
