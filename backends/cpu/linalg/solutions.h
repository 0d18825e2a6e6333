#ifndef TENSORD_BACKENDS_CPU_LINALG_SOLUTIONS_H_
#define TENSORD_BACKENDS_CPU_LINALG_SOLUTIONS_H_

#include "backends/cpu/kernel/kernel.h"

namespace tensord::cpu {

// Kernels of Solve and TriangularSolve on one matrix after the other, by LAPACK. No size may be zero, nor beyond 32
// bits.
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackSolve(const BoundInstruction& instruction);
absl::StatusOr<std::unique_ptr<Kernel>> MakeLapackTriangularSolve(const BoundInstruction& instruction);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_LINALG_SOLUTIONS_H_
