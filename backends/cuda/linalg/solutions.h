#ifndef TENSORD_BACKENDS_CUDA_LINALG_SOLUTIONS_H_
#define TENSORD_BACKENDS_CUDA_LINALG_SOLUTIONS_H_

#include "backends/cuda/kernels/kernel.h"

namespace tensord::cuda {

// Make the kernels of systems of equations, of operands with elements.
MakeKernel MakeSolve;
MakeKernel MakeTriangularSolve;

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_SOLUTIONS_H_
