#ifndef TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
#define TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/device/lanes.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cuda {

// One run on a lane. Nothing is on its way when Run has failed, when Finish has returned, or when it has gone. Confined
// to the thread that opened it. The lanes must outlive it.
class CudaSession final : public BackendSession {
 public:
  CudaSession(std::shared_ptr<Context> context, Lanes::Loan lane)
      : context_(std::move(context)), lane_(std::move(lane)) {}
  ~CudaSession() override;

  // Enqueues the segments, of a CudaProgram. A run with `times` waits for each segment.
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const> slots, absl::Span<void* const> scratch,
                   absl::Span<SegmentTime> times) override;
  // Waits for them, and gives the lane back.
  absl::Status Finish() override;

 private:
  absl::Status RunSegments(const PreparedSession& prepared, absl::Span<void* const> slots,
                           absl::Span<void* const> scratch, absl::Span<SegmentTime> times);

  const std::shared_ptr<Context> context_;
  Lanes::Loan lane_;  // null once it is given back
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_CUDA_SESSION_H_
