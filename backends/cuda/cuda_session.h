#ifndef TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
#define TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lanes.h"
#include "backends/cuda/memory/device_pool.h"
#include "backends/cuda/segment_clock.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// One run on a lane. Nothing is on its way when Run has failed, when Finish has returned, or when it has gone. Confined
// to the thread that opened it. The lanes must outlive it.
class CudaSession final : public BackendSession {
 public:
  CudaSession(std::shared_ptr<Context> context, std::shared_ptr<DevicePool> memory, Lanes::Loan lane)
      : context_(std::move(context)), memory_(std::move(memory)), lane_(std::move(lane)) {}
  ~CudaSession() override;

  // Enqueues the segments, of a CudaProgram that lives until Finish.
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override;
  // Waits for them, and gives the lane back. Returns the refusal that the verdicts of a run make, if there is one.
  absl::Status Finish() override;

 private:
  // The memory of a run, and its verdicts once they are here.
  struct RunState {
    const CudaProgram* program = nullptr;
    std::shared_ptr<Buffer> workspace;  // null: it needs none
    std::vector<uint64_t> verdicts;
    std::unique_ptr<SegmentClock> clock;  // null: nobody asks for times
    std::shared_ptr<Graph> graph;         // null: the run's kernels were launched one by one
  };
  absl::Status RunSegments(const CudaProgram& program, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                           absl::Span<SegmentTime> times);
  absl::StatusOr<RunState*> Begin(const CudaProgram& program);
  // Enqueues a segment of the program.
  absl::Status Enqueue(const CudaProgram& program, size_t position, const CudaProgram::Memory& memory);
  // Enqueues all segments by one launch, if there is a graph of such a run: a program that runs again with the same
  // addresses has one. Tells whether there is.
  absl::StatusOr<bool> EnqueueGraph(const CudaProgram& program, const CudaProgram::Memory& memory, RunState* state);

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<DevicePool> memory_;
  std::list<RunState> runs_;  // since it was opened; the lane's work is on their memory
  Lanes::Loan lane_;          // null once it is given back
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
