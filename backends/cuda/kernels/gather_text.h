#ifndef TENSORD_BACKENDS_CUDA_KERNELS_GATHER_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_GATHER_TEXT_H_

#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/exec/backend/bound_instruction.h"

namespace tensord::cuda {

// Returns the kernel of a gather whose result has elements: a thread for each element of the result, or for 16 bytes
// where windows are runs of them.
KernelText GatherText(const BoundInstruction& instruction, const CudaOptions& options);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_GATHER_TEXT_H_
