#ifndef TENSORD_BACKENDS_CUDA_KERNELS_LAYOUT_KERNELS_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_LAYOUT_KERNELS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Return the texts of the kernels below.
absl::StatusOr<KernelText> LayoutText(const BoundInstruction& instruction, const CudaOptions& options);
KernelText TriangleText(const BoundInstruction& instruction, const CudaOptions& options);

// Kernels of the ops that move elements to places known beforehand (LayoutCopiesOf), on every dtype.
MakeKernel MakeLayoutKernel;

// Kernels of tril and triu, on every dtype and for matrices along any two axes.
MakeKernel MakeTriangleKernel;

// The kernel of shape_of, which never reads its operand: the size is known when the kernel is made.
MakeKernel MakeShapeOfKernel;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_LAYOUT_KERNELS_H_
