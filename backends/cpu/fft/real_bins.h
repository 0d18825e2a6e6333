#ifndef TENSORD_BACKENDS_CPU_FFT_REAL_BINS_H_
#define TENSORD_BACKENDS_CPU_FFT_REAL_BINS_H_

#include <cstdint>

#include "backends/cpu/fft/lanes/roots.h"

namespace tensord::cpu {

// The way between the bins of a line of n real numbers and z, the transform of the n/2 complex numbers that its even
// and odd elements make: z's even part is the transform of the even elements, and bins k and n/2 - k are made of z at k
// and at n/2 - k. `half` is n/2, `roots` are those of n. Numbers are pairs of T. For T float and double.

// Makes bins k and half - k for each k of [begin, end), with 0 < k and 2 k < half, conjugated if asked for. In place of
// z, or elsewhere.
template <typename T>
void BinsFromHalves(const T* z, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, bool conjugate,
                    T* bins);

// The same backwards, twice as large.
template <typename T>
void HalvesFromBins(const T* bins, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, T* z);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_REAL_BINS_H_
