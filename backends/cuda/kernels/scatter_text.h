#ifndef TENSORD_BACKENDS_CUDA_KERNELS_SCATTER_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_SCATTER_TEXT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/exec/backend/bound_instruction.h"

namespace tensord::cuda {

// Returns the kernel of a scatter. Whatever the number of blocks, its bits are those of updates in index order:
//
//   integers, BOOL   atomics: order does not matter; products of integers as those of floats
//   set              the last window wins: atomicMax of its number, by element, then that window's element alone
//   others           windows are sorted by destination and index; each element takes its updates in that order
//
// The result may be operand 0. UNSUPPORTED_ON_DEVICE if the destination and the number of an update do not fit in 64
// bits together.
struct ScatterKernelText {
  KernelText text;
  absl::string_view way;  // "atomics", for Explain
};
absl::StatusOr<ScatterKernelText> ScatterText(const BoundInstruction& instruction, const CudaOptions& options);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_SCATTER_TEXT_H_
