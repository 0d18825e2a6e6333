#ifndef TENSORD_BACKENDS_CPU_LAPACK_SECULAR_H_
#define TENSORD_BACKENDS_CPU_LAPACK_SECULAR_H_

#include "backends/cpu/lapack.h"

// Roots of the equations that divide and conquer leaves, which LAPACKE does not have: LAPACK's own symbols.

extern "C" {
void slaed4_(const lapack_int* n, const lapack_int* i, const float* d, const float* z, float* delta, const float* rho,
             float* root, lapack_int* info);
void dlaed4_(const lapack_int* n, const lapack_int* i, const double* d, const double* z, double* delta,
             const double* rho, double* root, lapack_int* info);
}

namespace tensord::cpu::lapack {

// Root number `i` from 0 of 1 + rho·sum z[j]²/(d[j] - x), where d ascends, z is of norm 1 and rho > 0: d[j] - x goes
// to `differences`, and of one or two terms an eigenvector of diag(d) + rho·z·z^T.
#define TENSORD_LAPACK_SECULAR(T, p)                                                                       \
  inline int64_t EigenRoot(int64_t n, int64_t i, const T* d, const T* z, T rho, T* differences, T* root) { \
    const lapack_int size = static_cast<lapack_int>(n), index = static_cast<lapack_int>(i + 1);            \
    lapack_int info = 0;                                                                                   \
    p##laed4_(&size, &index, d, z, differences, &rho, root, &info);                                        \
    return info;                                                                                           \
  }
TENSORD_LAPACK_SECULAR(float, s)
TENSORD_LAPACK_SECULAR(double, d)
#undef TENSORD_LAPACK_SECULAR

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LAPACK_SECULAR_H_
