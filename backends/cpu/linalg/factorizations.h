#ifndef TENSORD_BACKENDS_CPU_LINALG_FACTORIZATIONS_H_
#define TENSORD_BACKENDS_CPU_LINALG_FACTORIZATIONS_H_

#include "backends/cpu/kernel/family_kernel.h"

namespace tensord::cpu {

// Kernels of Cholesky, Lu, Qr and HouseholderQr on one matrix after the other, by LAPACK. No size may be zero, nor
// beyond 32 bits.
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackCholesky(const BoundInstruction& instruction);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackLu(const BoundInstruction& instruction, const FamilyContext& context);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackQr(const BoundInstruction& instruction, const FamilyContext& context);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackHouseholderQr(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_FACTORIZATIONS_H_
