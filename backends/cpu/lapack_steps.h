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

// Of real matrices. The reduction to a tridiagonal matrix; the reflectors stay in a.
#define TENSORD_LAPACK_STEPS(T, p)                                                                                 \
  inline int64_t Sytrd(int64_t n, T* a, T* diagonal, T* beside, T* tau, T* work, int64_t work_size) {              \
    const lapack_int size = static_cast<lapack_int>(n);                                                            \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                 \
      return LAPACKE_##p##sytrd_work(LAPACK_COL_MAJOR, 'L', size, a, size, diagonal, beside, tau, w, lwork);       \
    });                                                                                                            \
  }                                                                                                                \
  /* Eigenvectors of a tridiagonal matrix. work: 1 + 4n + n^2, integers: 3 + 5n. */                                \
  inline int64_t Stedc(int64_t n, T* diagonal, T* beside, T* vectors, T* work, lapack_int* integers) {             \
    const lapack_int size = static_cast<lapack_int>(n);                                                            \
    return LAPACKE_##p##stedc_work(LAPACK_COL_MAJOR, 'I', size, diagonal, beside, vectors, size, work,             \
                                   static_cast<lapack_int>(1 + 4 * n + n * n), integers,                           \
                                   static_cast<lapack_int>(3 + 5 * n));                                            \
  }                                                                                                                \
  /* Singular vectors of a bidiagonal matrix, upper or lower. work: 3n^2 + 4n, integers: 8n. */                    \
  inline int64_t Bdsdc(bool upper, int64_t n, T* diagonal, T* beside, T* u, int64_t u_leading, T* vh,              \
                       int64_t vh_leading, T* work, lapack_int* integers) {                                        \
    T unused{};                                                                                                    \
    lapack_int unused_integer = 0;                                                                                 \
    return LAPACKE_##p##bdsdc_work(LAPACK_COL_MAJOR, upper ? 'U' : 'L', 'I', static_cast<lapack_int>(n), diagonal, \
                                   beside, u, static_cast<lapack_int>(u_leading), vh,                              \
                                   static_cast<lapack_int>(vh_leading), &unused, &unused_integer, work, integers); \
  }
TENSORD_LAPACK_STEPS(float, s)
TENSORD_LAPACK_STEPS(double, d)
#undef TENSORD_LAPACK_STEPS

// Of complex ones: the reductions, whose results are real, and the unitary matrices that their reflectors make.
// Those of an m×n matrix are Q (m×columns) and P^H (rows×n), which take the place of the reflectors.
#define TENSORD_LAPACK_COMPLEX_STEPS(T, p)                                                                        \
  inline int64_t Hetrd(int64_t n, T* a, Real<T>* diagonal, Real<T>* beside, T* tau, T* work, int64_t work_size) { \
    const lapack_int size = static_cast<lapack_int>(n);                                                           \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                \
      return LAPACKE_##p##hetrd_work(LAPACK_COL_MAJOR, 'L', size, a, size, diagonal, beside, tau, w, lwork);      \
    });                                                                                                           \
  }                                                                                                               \
  inline int64_t Ungtr(int64_t n, T* a, const T* tau, T* work, int64_t work_size) {                               \
    const lapack_int size = static_cast<lapack_int>(n);                                                           \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                \
      return LAPACKE_##p##ungtr_work(LAPACK_COL_MAJOR, 'L', size, a, size, tau, w, lwork);                        \
    });                                                                                                           \
  }                                                                                                               \
  inline int64_t UngbrQ(int64_t m, int64_t n, int64_t columns, T* a, const T* tau, T* work, int64_t work_size) {  \
    const lapack_int rows = static_cast<lapack_int>(m);                                                           \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                \
      return LAPACKE_##p##ungbr_work(LAPACK_COL_MAJOR, 'Q', rows, static_cast<lapack_int>(columns),               \
                                     static_cast<lapack_int>(n), a, rows, tau, w, lwork);                         \
    });                                                                                                           \
  }                                                                                                               \
  inline int64_t UngbrP(int64_t m, int64_t n, int64_t rows, T* a, const T* tau, T* work, int64_t work_size) {     \
    const lapack_int size = static_cast<lapack_int>(rows);                                                        \
    return WithWork(work, work_size, [&](T* w, lapack_int lwork) {                                                \
      return LAPACKE_##p##ungbr_work(LAPACK_COL_MAJOR, 'P', size, static_cast<lapack_int>(n),                     \
                                     static_cast<lapack_int>(m), a, size, tau, w, lwork);                         \
    });                                                                                                           \
  }
TENSORD_LAPACK_COMPLEX_STEPS(Complex64, c)
TENSORD_LAPACK_COMPLEX_STEPS(Complex128, z)
#undef TENSORD_LAPACK_COMPLEX_STEPS

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LAPACK_STEPS_H_
