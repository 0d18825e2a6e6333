#ifndef TENSORD_BACKENDS_CPU_LAPACK_STEPS_H_
#define TENSORD_BACKENDS_CPU_LAPACK_STEPS_H_

#include "backends/cpu/lapack.h"

// The steps of which eigenvalues and singular values are made, as lapack.h has the routines.

namespace tensord::cpu::lapack {

// The reflector that leaves alpha of (alpha, x) alone, of n numbers; a real alpha.
#define TENSORD_LAPACK_REFLECTOR(T, p)                                     \
  inline void Larfg(int64_t n, T* alpha, T* x, T* tau) {                   \
    LAPACKE_##p##larfg_work(static_cast<lapack_int>(n), alpha, x, 1, tau); \
  }
TENSORD_LAPACK_REFLECTOR(float, s)
TENSORD_LAPACK_REFLECTOR(double, d)
TENSORD_LAPACK_REFLECTOR(Complex64, c)
TENSORD_LAPACK_REFLECTOR(Complex128, z)
#undef TENSORD_LAPACK_REFLECTOR

// Of real matrices.
#define TENSORD_LAPACK_STEPS(T, p)                                                                               \
  /* Eigenvectors of a tridiagonal matrix by QR iterations, in columns `leading` apart. work: 2n. */             \
  inline int64_t Steqr(int64_t n, T* diagonal, T* beside, T* vectors, int64_t leading, T* work) {                \
    return LAPACKE_##p##steqr_work(LAPACK_COL_MAJOR, 'I', static_cast<lapack_int>(n), diagonal, beside, vectors, \
                                   static_cast<lapack_int>(leading), work);                                      \
  }
TENSORD_LAPACK_STEPS(float, s)
TENSORD_LAPACK_STEPS(double, d)
#undef TENSORD_LAPACK_STEPS

// Values alone. Eigenvalues of a tridiagonal matrix, and singular values of a bidiagonal one with a work of 4n.
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

#endif  // TENSORD_BACKENDS_CPU_LAPACK_STEPS_H_
