#ifndef TENSORD_BACKENDS_CPU_FFT_KERNELS_H_
#define TENSORD_BACKENDS_CPU_FFT_KERNELS_H_

#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// Kernels of the family fft. They do not fail.
absl::Span<const FamilyKernel> FftKernels();
bool IsFft(const OpDef& op);
// Tells whether it is a complex transform that neither pads nor cuts.
bool KeepsSizes(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FFT_KERNELS_H_
