#ifndef TENSORD_BACKENDS_CUDA_KERNELS_SMALL_PRODUCT_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_SMALL_PRODUCT_TEXT_H_

#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/printer.h"
#include "backends/cuda/kernels/product_space.h"
#include "engine/ops/semiring.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Tells whether a product is many small ones, of at most 32 rows, columns and terms: tiles would be empty for the most
// part, and so they are in NVIDIA's libraries.
bool IsSmallProduct(const ProductSpace& space);

// Returns a kernel of such a product, as OwnProductText does: a thread for each element of the result adds its terms
// one after the other, and finds most of them in the cache that its block shares.
KernelText SmallProductText(const ProductSpace& space, Algebra algebra, DType operands, DType result,
                            const CudaOptions& options);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_SMALL_PRODUCT_TEXT_H_
