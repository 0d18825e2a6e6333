#ifndef TENSORD_BACKENDS_CUDA_KERNELS_COPY_TEXT_H_
#define TENSORD_BACKENDS_CUDA_KERNELS_COPY_TEXT_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cuda/codegen/kernel_text.h"
#include "backends/cuda/codegen/lines.h"
#include "backends/cuda/codegen/printer.h"
#include "engine/exec/backend/copy_axes.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// A start that the device reads from a vector of integers: entry k is clamped to 0 … last and steps `stride` elements.
struct ReadStart {
  struct Entry {
    int64_t last = 0;
    int64_t stride = 0;
  };
  int pointer = 0;  // the vector's, among the kernel's
  DType dtype = DType::kI32;
  std::vector<Entry> entries;
};

// One side of a copy.
struct CopySide {
  static constexpr int kZero = -1;  // as a source: one element, of which all bits are 0
  int pointer = 0;                  // the tensor's, among the kernel's
  int64_t offset = 0;               // elements to the first one
  std::optional<ReadStart> start;   // added to it
};

// A copy of at least one element.
struct CopyPart {
  CopyAxes axes;
  CopySide from;
  CopySide into;
};

// Copies that may run at once.
struct CopyStage {
  std::vector<CopyPart> parts;
  std::optional<std::pair<int32_t, int32_t>> unless_same = std::nullopt;  // as of CudaLaunch
};

// Writes the entries of a kernel that copies elements of 1, 2, 4, 8 or 16 bytes, stage after stage. Sources and
// destinations do not overlap. A part whose sides have different fastest axes goes by tiles through shared memory, all
// others by rows in the order of the destination: by 16 bytes where sizes and strides are multiples, and the pointers
// at run time.
std::vector<CudaLaunch> WriteCopies(const std::vector<CopyStage>& stages, int64_t element_bytes,
                                    const CudaOptions& options, CudaLines* lines);

// Returns that kernel alone.
KernelText CopyText(const std::vector<CopyStage>& stages, int64_t element_bytes, int64_t scratch_bytes,
                    const CudaOptions& options);

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_KERNELS_COPY_TEXT_H_
