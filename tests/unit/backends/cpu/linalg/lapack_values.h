#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_LAPACK_VALUES_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_LAPACK_VALUES_H_

#include "backends/cpu/linalg/lapack/lapack.h"

// LAPACK's values without vectors, the oracle of ours.

namespace tensord::cpu::lapack {

// Eigenvalues of a tridiagonal matrix, and singular values of a bidiagonal one with a work of 4n.
#define TENSORD_LAPACK_VALUES(T, p)                                                                                    \
  inline int64_t Sterf(int64_t n, T* diagonal, T* beside) {                                                            \
    return LAPACKE_##p##sterf_work(static_cast<lapack_int>(n), diagonal, beside);                                      \
  }                                                                                                                    \
  inline int64_t BdsqrValues(bool upper, int64_t n, T* diagonal, T* beside, T* work) {                                 \
    T unused{};                                                                                                        \
    return LAPACKE_##p##bdsqr_work(LAPACK_COL_MAJOR, upper ? 'U' : 'L', static_cast<lapack_int>(n), 0, 0, 0, diagonal, \
                                   beside, &unused, 1, &unused, 1, &unused, 1, work);                                  \
  }
TENSORD_LAPACK_VALUES(float, s)
TENSORD_LAPACK_VALUES(double, d)
#undef TENSORD_LAPACK_VALUES

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_LINALG_LAPACK_VALUES_H_
