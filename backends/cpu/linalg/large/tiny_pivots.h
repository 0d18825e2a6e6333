#ifndef TENSORD_BACKENDS_CPU_LINALG_LARGE_TINY_PIVOTS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LARGE_TINY_PIVOTS_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/lapack.h"

// LAPACK and BLAS multiply with reciprocals of pivots; the reciprocal of a subnormal pivot is infinite. Matrices with
// such pivots are solved here, by division, one column after the other.

namespace tensord::cpu {

// Tells whether one of the first k diagonal entries of a column-major matrix is subnormal. Zeros do not count.
template <typename T>
bool HasTinyPivot(const T* a, int64_t leading, int64_t k);

// LU factors with partial pivoting of an m x n matrix with dense columns, in its place, as LAPACK's getrf.
template <typename T>
int64_t FactorByDivision(int64_t m, int64_t n, T* a, lapack_int* pivots);

// Solves as lapack::Trsm does.
template <typename T>
void SolveByDivision(const lapack::Triangle& triangle, int64_t m, int64_t n, const T* a, int64_t lda, T* b,
                     int64_t ldb);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LARGE_TINY_PIVOTS_H_
