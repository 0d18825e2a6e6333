#ifndef TENSORD_BACKENDS_CUDA_KERNELS_INDEXING_KERNELS_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_INDEXING_KERNELS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Return the texts of the kernels below.
KernelText DynamicSliceText(const BoundInstruction& instruction, const CudaOptions& options);
KernelText DynamicUpdateSliceText(const BoundInstruction& instruction, const CudaOptions& options);

// Kernels of dynamic_slice and dynamic_update_slice, on every dtype: copies whose starts the device reads.
MakeKernel MakeDynamicSliceKernel;
// Its result may be its operand 0: then the window alone is written.
MakeKernel MakeDynamicUpdateSliceKernel;

// Kernels of gather and gather_dynamic_slice_sizes, on every dtype.
MakeKernel MakeGatherKernel;

// Kernels of scatter, on every dtype and with every combiner. The result may be operand 0.
MakeKernel MakeScatterKernel;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_INDEXING_KERNELS_H_
