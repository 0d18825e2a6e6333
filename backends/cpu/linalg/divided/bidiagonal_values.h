#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VALUES_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VALUES_H_

#include <cstdint>

namespace tensord::cpu {

// Puts the singular values of a bidiagonal matrix of n finite numbers, upper or lower, into `diagonal`, descending and
// each to nearly all of its digits, by the dqds algorithm [Fernando and Parlett, Accurate singular values and
// differential qd algorithms, 1994; Parlett and Marques, An implementation of the dqds algorithm, 2000]. `beside` (n -
// 1 elements) is left alone; `work` has 4n. LAPACK's bdsqr is one call for all of it; here LAPACK has each sweep of n
// steps with its choice of a shift, between which the run may be stopped. Returns 0, or more where it does not
// converge.
template <typename R>
int64_t BidiagonalValues(int64_t n, R* diagonal, const R* beside, R* work);

extern template int64_t BidiagonalValues(int64_t n, float* diagonal, const float* beside, float* work);
extern template int64_t BidiagonalValues(int64_t n, double* diagonal, const double* beside, double* work);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_BIDIAGONAL_VALUES_H_
