#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_STEPS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_STEPS_H_

#include "backends/cpu/linalg/lapack/lapack.h"

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

// Steps for real matrices.
#define TENSORD_LAPACK_STEPS(T, p)                                                                               \
  /* Eigenvectors of a tridiagonal matrix by QR iterations, in columns `leading` apart. work: 2n. */             \
  inline int64_t Steqr(int64_t n, T* diagonal, T* beside, T* vectors, int64_t leading, T* work) {                \
    return LAPACKE_##p##steqr_work(LAPACK_COL_MAJOR, 'I', static_cast<lapack_int>(n), diagonal, beside, vectors, \
                                   static_cast<lapack_int>(leading), work);                                      \
  }
TENSORD_LAPACK_STEPS(float, s)
TENSORD_LAPACK_STEPS(double, d)
#undef TENSORD_LAPACK_STEPS

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_STEPS_H_
