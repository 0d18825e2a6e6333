#ifndef TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_
#define TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "backends/cuda/graph_cache.h"
#include "backends/cuda/kernels/kernel.h"
#include "backends/cuda/step_times.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/parallel_for.h"

namespace tensord::cuda {

// The kernels of a session, each on its slots. Immutable, so thread-safe.
//
// The memory of a session, besides slots and scratch, is the kernels' common workspace, and behind it a verdict for
// each kernel that judges.
class CudaProgram final : public PreparedSession {
 public:
  // Makes a kernel for each segment, all at once where `parallel` is not empty. UNSUPPORTED_ON_DEVICE for the first
  // segment that there is no kernel for; breaks off as CheckStopped says. Its graphs are among those of `kept`; null:
  // there are no others.
  static absl::StatusOr<std::unique_ptr<CudaProgram>> Create(absl::Span<const SegmentInstruction> segments,
                                                             const KernelContext& context, const ParallelFor& parallel,
                                                             std::shared_ptr<KeptGraphs> kept);
  // Does the same with kernels that `make` makes, on any thread.
  using Maker = absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(const BoundInstruction&)>;
  static absl::StatusOr<std::unique_ptr<CudaProgram>> CreateOf(absl::Span<const SegmentInstruction> segments,
                                                               Maker make, const ParallelFor& parallel = {},
                                                               std::shared_ptr<KeptGraphs> kept = nullptr);

  size_t num_segments() const { return steps_.size(); }
  // The memory of a run: `slots` and `scratch` as in BackendSession::Run; `workspace` has workspace_bytes().
  struct Memory {
    absl::Span<void* const> slots;
    absl::Span<void* const> scratch;
    CuAddress workspace = 0;
  };
  // Enqueues a segment on a lane's stream, part by part as `pace` lets it; all at once if that is null.
  absl::Status Enqueue(size_t position, const Memory& memory, CuStream stream, LibraryHandles* handles,
                       Pace* pace) const;

  // Tells whether a graph is worth its making, and may be made: there are a few kernels, and none waits for the device.
  bool captures() const { return captures_ && steps_.size() >= kFewSteps; }
  // Makes the handles of a lane that its kernels take, before a capture.
  absl::Status MakeHandles(LibraryHandles* handles) const;
  // Returns all addresses that the kernels of a run are given.
  GraphCache::Addresses AddressesOf(const Memory& memory) const;
  // Returns the graphs of runs, and the times of their segments.
  GraphCache& graphs() const { return *graphs_; }
  StepTimes& times() const { return *times_; }

  // Returns the place of the verdicts in the workspace: words, one for each kernel that judges.
  int64_t verdicts_offset_bytes() const { return verdicts_offset_bytes_; }
  size_t num_verdicts() const { return judges_.size(); }
  // Returns the first refusal, with its node, that a run's verdicts make.
  absl::Status Judge(absl::Span<const uint64_t> verdicts) const;

  int64_t scratch_bytes(size_t position) const override;
  int64_t workspace_bytes() const override;
  std::string DescribeKernel(size_t position) const override { return steps_[position].kernel->Describe(); }
  std::string DescribeReplay() const override;
  absl::Span<const SegmentChain> chains() const override { return chains_; }

 private:
  // With fewer, a graph takes the host as long as they do.
  static constexpr size_t kFewSteps = 4;

  struct Step {
    std::unique_ptr<Kernel> kernel;
    absl::InlinedVector<Slot, 4> operands;
    absl::InlinedVector<Slot, 2> results;
    int64_t verdict = -1;  // the place of its verdict
  };
  // A kernel that judges, with the client's names for it.
  struct JudgingStep {
    size_t position = 0;
    std::string node;
    std::string op;
  };
  void Append(const SegmentInstruction& segment, std::unique_ptr<Kernel> kernel);

  std::vector<Step> steps_;
  std::vector<JudgingStep> judges_;
  std::vector<SegmentChain> chains_;  // products that add their biases
  int64_t verdicts_offset_bytes_ = 0;
  bool captures_ = true;
  std::unique_ptr<StepTimes> times_;    // constant after CreateOf, like the next
  std::unique_ptr<GraphCache> graphs_;  // behind the kernels that they call
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_CUDA_PROGRAM_H_
