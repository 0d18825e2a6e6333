#ifndef TENSORD_BACKENDS_CUDA_LINALG_DETERMINANTS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_DETERMINANTS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Make the kernels to which determinants are expanded, besides Lu. They are ours alone, and keep to the arithmetic of
// engine/families/linalg/scaled_product.h and equilibration.h.
MakeKernel MakeTriangularDeterminant;
MakeKernel MakeEquilibrate;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_DETERMINANTS_H_
