#ifndef TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Makes the kernel of a dot_general: for an ordinary one of floats and complex numbers a product of cublasLt, between
// copies where axes do not lie as it wants them; own kernels for integers, BOOL, other algebras, many small
// products, and products that cublasLt has no algorithm for. The algorithm is chosen here, so that the same program
// gives the same bits at every run; none adds by atomics.
MakeKernel MakeDotKernel;

// Makes the kernel of a dot_general and of `map`, which adds a bias to its result: one call of cublasLt. The kernel's
// last operand is the bias, and its result that of `map`, of which `product` is the operand that is the product. Null
// where `map` does more, or where the call would give it other bits than a sum after the product: the bias is of F32,
// one number for each row that cublasLt sees.
absl::StatusOr<std::unique_ptr<Kernel>> MakeBiasedDotKernel(const BoundInstruction& instruction,
                                                            const MicroProgram& map, int32_t product,
                                                            const KernelContext& context);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_
