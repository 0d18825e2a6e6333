#ifndef TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_TEXT_H_

#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/printer.h"
#include "backends/cuda/kernels/product_space.h"
#include "engine/ops/semiring.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// Returns a kernel of a product whose result has elements: in any algebra, on every dtype, over any axes. A block
// computes tiles of up to 64 x 64 elements; slices of 16 terms of both operands pass through shared memory as
// accumulators, each thread has up to 4 x 4 sums in registers. Floats are added in parts of 256 terms, whose sums
// follow one another: at most (256 + k / 256) roundings. Where a long sum has few tiles, blocks share its terms: their
// sums are added up in scratch memory, in an order that sizes and options fix. The pointers are lhs, rhs, the result.
KernelText OwnProductText(const ProductSpace& space, Algebra algebra, DType operands, DType result,
                          const CudaOptions& options);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_OWN_PRODUCT_TEXT_H_
