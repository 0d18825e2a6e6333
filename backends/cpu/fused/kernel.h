#ifndef TENSORD_BACKENDS_CPU_FUSED_KERNEL_H_
#define TENSORD_BACKENDS_CPU_FUSED_KERNEL_H_

#include "backends/cpu/jit/options.h"
#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Makes the kernel of the op "fused": its micro program in one pass over memory for each stage, by FusedPlan. A result
// may share memory with an operand under the conditions of InPlacePairs.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedKernel(const BoundInstruction& instruction, const JitOptions& jit);
inline absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedKernel(const BoundInstruction& instruction) {
  return MakeFusedKernel(instruction, JitOptions());
}

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_KERNEL_H_
