#ifndef TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
#define TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cuda/cuda_program.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lanes.h"
#include "backends/cuda/device/pace.h"
#include "backends/cuda/memory/device_pool.h"
#include "backends/cuda/segment_clock.h"
#include "backends/cuda/work_ahead.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// One run on a lane. Nothing is on its way when Run has failed, when Finish has returned, or when it has gone. Confined
// to the thread that opened it. The lanes must outlive it.
class CudaSession final : public BackendSession, private Pace {
 public:
  // No more than `most_ahead` of work is ahead of the device, or a step that takes longer.
  CudaSession(std::shared_ptr<Context> context, std::shared_ptr<DevicePool> memory, Lanes::Loan lane,
              std::chrono::nanoseconds most_ahead)
      : context_(std::move(context)),
        memory_(std::move(memory)),
        lane_(std::move(lane)),
        ahead_(context_, most_ahead) {}

  // Enqueues the segments, of a CudaProgram that lives until Finish. Once.
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override;
  // Waits for them, and gives the lane back. Returns the refusal that the verdicts of a run make, if there is one.
  absl::Status Finish() override;

 private:
  // The memory of the lane's work, and its verdicts once they are here.
  struct RunState {
    const CudaProgram* program = nullptr;  // null: nothing has run
    std::shared_ptr<Buffer> workspace;     // null: it needs none
    std::vector<uint64_t> verdicts;
    size_t position = 0;                  // of the segment that is being enqueued
    absl::Status broken_off;              // what a part of it has been refused with
    std::unique_ptr<SegmentClock> clock;  // null: nobody asks for times
    std::shared_ptr<Graph> graph;         // null: the run's kernels were launched one by one
  };
  absl::Status RunSegments(const CudaProgram& program, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                           absl::Span<SegmentTime> times);
  // Makes ready what a run has besides its segments.
  absl::Status Begin(const CudaProgram& program, absl::Span<SegmentTime> times);
  CuAddress workspace() const;
  CuAddress verdicts() const;
  int64_t verdict_bytes() const { return static_cast<int64_t>(run_.verdicts.size() * sizeof(uint64_t)); }
  // Waits until the device has come close enough for a part more of a segment; breaks off when nobody wants it.
  absl::Status MakeRoomFor(size_t position);
  // Enqueues a segment of the program, and notes it.
  absl::Status Enqueue(const CudaProgram& program, size_t position, const CudaProgram::Memory& memory);
  absl::Status BeforePart(int64_t part, int64_t parts) override;
  // Enqueues all segments by one launch, if there is a graph of such a run: a program that runs again with the same
  // addresses has one, unless it takes longer than may be ahead. Tells whether there is.
  absl::StatusOr<bool> EnqueueGraph(const CudaProgram& program, const CudaProgram::Memory& memory);

  const std::shared_ptr<Context> context_;
  const std::shared_ptr<DevicePool> memory_;
  RunState run_;
  Lanes::Loan lane_;  // null once it is given back; goes before the memory of its work
  WorkAhead ahead_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
