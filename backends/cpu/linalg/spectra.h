#ifndef TENSORD_BACKENDS_CPU_LINALG_SPECTRA_H_
#define TENSORD_BACKENDS_CPU_LINALG_SPECTRA_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Make kernels of singular values and eigenvalues, with vectors if the op has them, on one matrix after the other, by
// LAPACK. No size may be zero. Sizes beyond LAPACK's 32 bits are refused with UNSUPPORTED_ON_DEVICE.
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackSvd(const BoundInstruction& instruction);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackEigh(const BoundInstruction& instruction);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackEig(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_SPECTRA_H_
