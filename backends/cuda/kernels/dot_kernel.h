#ifndef TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Makes the kernel of a dot_general: for an ordinary one of floats and complex numbers a product of cublasLt, between
// copies where axes do not lie as it wants them; own kernels for integers, BOOL, other algebras, many small
// products, and products that cublasLt has no algorithm for. The algorithm is chosen here, so that the same program
// gives the same bits at every run; none adds by atomics.
MakeKernel MakeDotKernel;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_DOT_KERNEL_H_
