#ifndef TENSORD_BACKENDS_CUDA_LINALG_KERNELS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_KERNELS_H_

#include "absl/types/span.h"
#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// The kernels of the family linalg.
absl::Span<const FamilyKernel> LinalgKernels();

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_KERNELS_H_
