#ifndef TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VALUES_H_
#define TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VALUES_H_

#include <cmath>
#include <cstdint>

#include "backends/cpu/linalg/divided/merge_tree.h"

namespace tensord::cpu {

// Tells whether a row is joined to the next one: as in LAPACK, a number that vanishes beside the diagonal parts blocks.
template <typename R>
bool IsJoined(const R* diagonal, const R* beside, int64_t row) {
  return std::abs(beside[row]) >
         kRounding<R> * std::sqrt(std::abs(diagonal[row])) * std::sqrt(std::abs(diagonal[row + 1]));
}

// Puts the eigenvalues of a symmetric tridiagonal matrix of n finite numbers into `diagonal`, ascending, by QL
// iterations without square roots, the variant of Pal, Walker and Kahan [Parlett, The symmetric eigenvalue problem,
// 1980, section 8.15]. `beside` (n - 1 elements) is undefined then. LAPACK's sterf is one call for all of it; here the
// run may be stopped between sweeps, which are n steps each. Returns 0, or the end of a block that does not converge.
template <typename R>
int64_t TridiagonalValues(int64_t n, R* diagonal, R* beside);

extern template int64_t TridiagonalValues(int64_t n, float* diagonal, float* beside);
extern template int64_t TridiagonalValues(int64_t n, double* diagonal, double* beside);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_DIVIDED_TRIDIAGONAL_VALUES_H_
