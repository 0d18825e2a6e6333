#ifndef TENSORD_BACKENDS_CPU_LINALG_KERNELS_H_
#define TENSORD_BACKENDS_CPU_LINALG_KERNELS_H_

#include "absl/types/span.h"
#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// Returns the kernels of the family linalg, of every op that is not a composition of others.
absl::Span<const FamilyKernel> LinalgKernels();

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_KERNELS_H_
