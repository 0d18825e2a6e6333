#ifndef TENSORD_BACKENDS_CUDA_LINALG_EQUILIBRATE_TEXT_H_
#define TENSORD_BACKENDS_CUDA_LINALG_EQUILIBRATE_TEXT_H_

#include <cstdint>

#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Prints what engine/families/linalg/equilibration.h does to a batch of n x n matrices, with pointers to the matrices,
// to the divided ones, to the exponent of each as a real number, to 2 n ints for each, and to two ints for each. Small
// matrices have a block each; all blocks share a large one.
KernelText EquilibrateText(DType dtype, int64_t n, int64_t batch, int64_t most_blocks);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_EQUILIBRATE_TEXT_H_
