#ifndef TENSORD_BACKENDS_CUDA_LINALG_SMALL_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_LINALG_SMALL_KERNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Tells whether the matrices of the first operand are decomposed by a text of ours alone.
bool HasSmallMatrices(const BoundInstruction& instruction);

// Make kernels of one launch for instructions with small matrices (HasSmallMatrices), by the texts of `small_texts.h`.
// The kernels that iterate end with the verdict NO_CONVERGENCE after `most_sweeps`.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallQr(const BoundInstruction& instruction, const KernelContext& context);
absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallReflectors(const BoundInstruction& instruction,
                                                            const KernelContext& context);
absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallEigh(const BoundInstruction& instruction, const KernelContext& context,
                                                      int most_sweeps);
absl::StatusOr<std::unique_ptr<Kernel>> MakeSmallSvd(const BoundInstruction& instruction, const KernelContext& context,
                                                     int most_sweeps);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_SMALL_KERNEL_H_
