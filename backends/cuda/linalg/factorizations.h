#ifndef TENSORD_BACKENDS_CUDA_LINALG_FACTORIZATIONS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_FACTORIZATIONS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Make the kernels of factorizations, of operands with elements.
MakeKernel MakeCholesky;
MakeKernel MakeLu;
MakeKernel MakeQr;
MakeKernel MakeHouseholderQr;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_FACTORIZATIONS_H_
