#ifndef TENSORD_BACKENDS_CPU_LINALG_LANES_KERNELS_H_
#define TENSORD_BACKENDS_CPU_LINALG_LANES_KERNELS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Returns the kernels of linear algebra for small matrices, which lie across the lanes of vectors; null if an
// instruction is not for them. That depends on the op, the dtype and the sizes of a matrix, never on how many there
// are: so do the bits.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallMatrixKernel(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_KERNELS_H_
