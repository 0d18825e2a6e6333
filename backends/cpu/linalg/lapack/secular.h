#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_SECULAR_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_SECULAR_H_

#include <cstddef>

#include "backends/cpu/linalg/lapack/lapack.h"

// Roots of the equations of divide and conquer, which LAPACKE does not have: LAPACK's own symbols.

extern "C" {
void slaed4_(const lapack_int* n, const lapack_int* i, const float* d, const float* z, float* delta, const float* rho,
             float* root, lapack_int* info);
void dlaed4_(const lapack_int* n, const lapack_int* i, const double* d, const double* z, double* delta,
             const double* rho, double* root, lapack_int* info);
void slasd4_(const lapack_int* n, const lapack_int* i, const float* d, const float* z, float* delta, const float* rho,
             float* root, float* sums, lapack_int* info);
void dlasd4_(const lapack_int* n, const lapack_int* i, const double* d, const double* z, double* delta,
             const double* rho, double* root, double* sums, lapack_int* info);
void slasdq_(const char* uplo, const lapack_int* sqre, const lapack_int* n, const lapack_int* ncvt,
             const lapack_int* nru, const lapack_int* ncc, float* d, float* e, float* vt, const lapack_int* ldvt,
             float* u, const lapack_int* ldu, float* c, const lapack_int* ldc, float* work, lapack_int* info,
             size_t uplo_length);
void dlasdq_(const char* uplo, const lapack_int* sqre, const lapack_int* n, const lapack_int* ncvt,
             const lapack_int* nru, const lapack_int* ncc, double* d, double* e, double* vt, const lapack_int* ldvt,
             double* u, const lapack_int* ldu, double* c, const lapack_int* ldc, double* work, lapack_int* info,
             size_t uplo_length);
}

namespace tensord::cpu::lapack {

// Root number `i` from 0 of 1 + rho·sum z[j]²/(d[j] - x), where d ascends, z is of norm 1 and rho > 0: d[j] - x goes
// to `differences`, and of one or two terms an eigenvector of diag(d) + rho·z·z^T.
// Root number `i` from 0 of 1 + rho·sum z[j]²/(d[j]² - x²), where d ascends from 0, z is of norm 1 and rho > 0: d[j] -
// x goes to `differences`, and d[j] + x to `sums`. The singular value decomposition of n rows of an upper bidiagonal
// matrix, of as many columns or one more: V^T, dense, and U are multiplied. work: 4n.
#define TENSORD_LAPACK_SECULAR(T, p)                                                                                   \
  inline int64_t EigenRoot(int64_t n, int64_t i, const T* d, const T* z, T rho, T* differences, T* root) {             \
    const lapack_int size = static_cast<lapack_int>(n), index = static_cast<lapack_int>(i + 1);                        \
    lapack_int info = 0;                                                                                               \
    p##laed4_(&size, &index, d, z, differences, &rho, root, &info);                                                    \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int64_t SingularRoot(int64_t n, int64_t i, const T* d, const T* z, T rho, T* differences, T* root, T* sums) { \
    const lapack_int size = static_cast<lapack_int>(n), index = static_cast<lapack_int>(i + 1);                        \
    lapack_int info = 0;                                                                                               \
    p##lasd4_(&size, &index, d, z, differences, &rho, root, sums, &info);                                              \
    return info;                                                                                                       \
  }                                                                                                                    \
  inline int64_t LeafSvd(int64_t n, bool has_more_columns, T* d, T* e, T* vt, T* u, int64_t u_leading, T* work) {      \
    const lapack_int more = has_more_columns ? 1 : 0, rows = static_cast<lapack_int>(n), columns = rows + more;        \
    const lapack_int none = 0, one = 1, leading = static_cast<lapack_int>(u_leading);                                  \
    lapack_int info = 0;                                                                                               \
    T unused{};                                                                                                        \
    p##lasdq_("U", &more, &rows, &columns, &rows, &none, d, e, vt, &columns, u, &leading, &unused, &one, work, &info,  \
              1);                                                                                                      \
    return info;                                                                                                       \
  }
TENSORD_LAPACK_SECULAR(float, s)
TENSORD_LAPACK_SECULAR(double, d)
#undef TENSORD_LAPACK_SECULAR

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_SECULAR_H_
