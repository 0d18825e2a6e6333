#ifndef TENSORD_BACKENDS_CUDA_KERNELS_STRIDED_COPY_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_STRIDED_COPY_TEXT_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// A copy between a tensor through strides and a dense one, for operands and results of libraries that the library
// cannot take as they lie.
struct StridedCopy {
  struct Axis {
    int64_t size;
    int64_t stride;  // in elements, of the side with strides
  };
  absl::InlinedVector<Axis, 6> axes;  // the fastest of the dense side first
  bool gathers = true;                // reads through the strides; else writes through them
  DType from = DType::kF32;
  DType to = DType::kF32;  // the same, or a wider one of its kind

  int64_t num_elements() const;
};

// Prints the copy as an entry with pointers to the tensor that is read and to the other. At most `most_blocks` blocks.
KernelText StridedCopyText(const StridedCopy& copy, int64_t most_blocks);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_STRIDED_COPY_TEXT_H_
