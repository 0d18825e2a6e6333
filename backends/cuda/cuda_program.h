#ifndef TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_
#define TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/compile/loaded_kernel.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// The kernels of a session, each on its slots. Immutable, so thread-safe.
class CudaProgram final : public PreparedSession {
 public:
  // Prints and compiles a kernel for each segment. The calling thread has entered the context. UNSUPPORTED_ON_DEVICE
  // for a segment that the printer has no kernel for; breaks off as CheckStopped says.
  static absl::StatusOr<std::unique_ptr<CudaProgram>> Create(absl::Span<const SegmentInstruction> segments,
                                                             KernelCompiler* compiler);

  size_t num_segments() const { return steps_.size(); }
  // Enqueues a segment. `slots` and `scratch` as in BackendSession::Run.
  absl::Status Enqueue(size_t position, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                       CuStream stream) const;

  int64_t scratch_bytes(size_t position) const override { return steps_[position].scratch_bytes; }
  std::string DescribeKernel(size_t position) const override;

 private:
  struct Step {
    std::shared_ptr<const LoadedKernel> kernel;  // null: there is nothing to compute
    absl::InlinedVector<Slot, 6> slots;          // of the operands, then of the results
    int64_t scratch_bytes = 0;
  };
  absl::Status Append(const SegmentInstruction& segment, KernelCompiler* compiler);

  std::vector<Step> steps_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_
