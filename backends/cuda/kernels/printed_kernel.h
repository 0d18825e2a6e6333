#ifndef TENSORD_BACKENDS_CUDA_KERNELS_PRINTED_KERNEL_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_PRINTED_KERNEL_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Kernels that the printer writes: of fused instructions, elementwise ops, iota and reduce.
MakeKernel MakePrintedKernel;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_PRINTED_KERNEL_H_
