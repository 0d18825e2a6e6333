#ifndef TENSORD_BACKENDS_CPU_LINALG_LAPACK_SWEEP_H_
#define TENSORD_BACKENDS_CPU_LINALG_LAPACK_SWEEP_H_

#include <cstdint>

#include "backends/cpu/linalg/lapack/lapack.h"

// A sweep of the dqds algorithm, which LAPACKE does not have: LAPACK's own symbols.

extern "C" {
void slasq3_(const lapack_int* first, lapack_int* last, float* z, lapack_int* turn, float* least, float* shift,
             float* shift_error, float* largest, lapack_int* failures, lapack_int* sweeps, lapack_int* divisions,
             const lapack_int* ieee, lapack_int* kind, float* least1, float* least2, float* d, float* d1, float* d2,
             float* g, float* tau);
void dlasq3_(const lapack_int* first, lapack_int* last, double* z, lapack_int* turn, double* least, double* shift,
             double* shift_error, double* largest, lapack_int* failures, lapack_int* sweeps, lapack_int* divisions,
             const lapack_int* ieee, lapack_int* kind, double* least1, double* least2, double* d, double* d1,
             double* d2, double* g, double* tau);
}

namespace tensord::cpu::lapack {

// Numbers that sweeps leave for the next one. The caller knows the meaning of the first four: the current place of the
// arrays, or 2 if rows were turned round since the last sweep; the least number of the diagonal, or less a first shift;
// the shifts so far; and a bound of the numbers.
template <typename R>
struct SweepState {
  lapack_int turn = 0;
  R least = 0, shift = 0, largest = 0;
  R shift_error = 0;
  lapack_int failures = 0, sweeps = 2, divisions = 0, kind = 0;
  R least1 = 0, least2 = 0, d = 0, d1 = 0, d2 = 0, g = 0, tau = 0;
};

// Takes rows [first, last] to the next place of their arrays. Rows at the end that are eigenvalues already are left
// out: their values are in q of place 0, and `last` is before them.
#define TENSORD_LAPACK_SWEEP(T, p)                                                                                     \
  inline void DqdsSweep(int64_t first, int64_t* last, T* z, SweepState<T>* s) {                                        \
    const lapack_int begin = static_cast<lapack_int>(first + 1), is_ieee = 1;                                          \
    lapack_int end = static_cast<lapack_int>(*last + 1);                                                               \
    p##lasq3_(&begin, &end, z, &s->turn, &s->least, &s->shift, &s->shift_error, &s->largest, &s->failures, &s->sweeps, \
              &s->divisions, &is_ieee, &s->kind, &s->least1, &s->least2, &s->d, &s->d1, &s->d2, &s->g, &s->tau);       \
    *last = end - 1;                                                                                                   \
  }
TENSORD_LAPACK_SWEEP(float, s)
TENSORD_LAPACK_SWEEP(double, d)
#undef TENSORD_LAPACK_SWEEP

}  // namespace tensord::cpu::lapack

#endif  // TENSORD_BACKENDS_CPU_LINALG_LAPACK_SWEEP_H_
