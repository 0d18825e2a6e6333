#ifndef TENSORD_BACKENDS_CPU_LINALG_TRIANGULAR_DETERMINANT_H_
#define TENSORD_BACKENDS_CPU_LINALG_TRIANGULAR_DETERMINANT_H_

#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// Returns the kernel of TriangularDeterminant, one matrix after the other: the same bits alone and in a batch. Sizes
// may be zero.
absl::StatusOr<std::unique_ptr<Kernel>> MakeTriangularDeterminant(const BoundInstruction& instruction,
                                                                  const FamilyContext& context);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_TRIANGULAR_DETERMINANT_H_
