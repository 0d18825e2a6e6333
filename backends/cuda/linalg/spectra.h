#ifndef TENSORD_BACKENDS_CUDA_LINALG_SPECTRA_H_
#define TENSORD_BACKENDS_CUDA_LINALG_SPECTRA_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Make the kernels of eigenvalues and singular values, with vectors or without, of operands with elements.
MakeKernel MakeEigh;
MakeKernel MakeSvd;
// UNSUPPORTED_ON_DEVICE where cuSOLVER is older than CUDA 12.8's.
MakeKernel MakeEig;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_SPECTRA_H_
