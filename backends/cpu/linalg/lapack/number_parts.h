#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_NUMBER_PARTS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_NUMBER_PARTS_H_

#include <complex>
#include <cstdint>

#include "backends/cpu/linalg/lapack/lapack.h"

namespace tensord::cpu {

// Functions that algorithms for real and for complex numbers need beside the operators.

// Real numbers that one of T consists of.
template <typename T>
inline constexpr int kNumberParts = lapack::kIsComplex<T> ? 2 : 1;

template <typename T>
T Conjugate(T x) {
  if constexpr (lapack::kIsComplex<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

// Multiplies finite numbers: the operator for complex ones looks for NaN and infinities in its result.
template <typename T>
T Multiply(T a, T b) {
  if constexpr (lapack::kIsComplex<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

// Writes a column times i behind `column`; real numbers need none. A complex matrix as it lies is a real one of twice
// as many rows. With each column followed by itself times i, its product with the parts of another matrix's numbers,
// one below the other, is the product of the two complex matrices.
template <typename T>
void AddColumnTimesI(T* column, int64_t count) {
  if constexpr (lapack::kIsComplex<T>) {
    for (int64_t i = 0; i < count; ++i) column[count + i] = T(-column[i].imag(), column[i].real());
  }
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_NUMBER_PARTS_H_
