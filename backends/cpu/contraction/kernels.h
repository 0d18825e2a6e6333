#ifndef TENSORD_BACKENDS_CPU_CONTRACTION_KERNELS_H_
#define TENSORD_BACKENDS_CPU_CONTRACTION_KERNELS_H_

#include "backends/cpu/contraction/contraction.h"
#include "backends/cpu/contraction/operands/axes.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Makes the kernel of dot_general, on every dtype. UNSUPPORTED_ON_DEVICE for other ops, and for sizes beyond BLAS's
// counters.
MakeKernel MakeDotKernel;

// Tells whether an instruction is a dot_general of ordinary products and sums: joins know no other.
bool IsOrdinaryDot(const BoundInstruction& instruction);

// Returns the plan and the kernel of a part of a dot instruction's space. Addresses of a part are those of its first
// elements in the whole tensors.
absl::StatusOr<Contraction> ContractionOf(const BoundInstruction& instruction, const DotSpace& part);
absl::StatusOr<std::unique_ptr<Kernel>> MakePartialDotKernel(const BoundInstruction& instruction, const DotSpace& part);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_KERNELS_H_
