#ifndef TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_KERNELS_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_KERNELS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Kernels of dot_general that need no library: on every dtype, in every algebra.
MakeKernel MakeOwnProductKernel;

// Kernels of affine_dot, on every dtype.
MakeKernel MakeAffineProductKernel;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_KERNELS_H_
