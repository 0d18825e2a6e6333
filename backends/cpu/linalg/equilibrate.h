#ifndef TENSORD_BACKENDS_CPU_LINALG_EQUILIBRATE_H_
#define TENSORD_BACKENDS_CPU_LINALG_EQUILIBRATE_H_

#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// Returns the kernel of Equilibrate, one matrix after the other. Sizes may be zero.
absl::StatusOr<std::unique_ptr<Kernel>> MakeEquilibrate(const BoundInstruction& instruction,
                                                        const FamilyContext& context);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_EQUILIBRATE_H_
