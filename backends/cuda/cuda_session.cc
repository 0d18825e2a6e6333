#include "backends/cuda/cuda_session.h"

#include <chrono>

#include "backends/cuda/cuda_program.h"
#include "engine/base/status_macros.h"

namespace tensord::cuda {

CudaSession::~CudaSession() {
  if (lane_ != nullptr) Finish().IgnoreError();
}

absl::Status CudaSession::Run(const PreparedSession& prepared, absl::Span<void* const> slots,
                              absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  absl::Status run = RunSegments(prepared, slots, scratch, times);
  // A run that is not wanted any more has work on its way.
  if (!run.ok()) Finish().IgnoreError();
  return run;
}

absl::Status CudaSession::RunSegments(const PreparedSession& prepared, absl::Span<void* const> slots,
                                      absl::Span<void* const> scratch, absl::Span<SegmentTime> times) {
  const auto& program = static_cast<const CudaProgram&>(prepared);
  RETURN_IF_ERROR(context_->Enter());
  for (size_t i = 0; i < program.num_segments(); ++i) {
    RETURN_IF_ERROR(CheckWanted());
    if (!times.empty()) times[i].start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(lane_->Enqueue([&](CuStream stream) { return program.Enqueue(i, slots, scratch, stream); }));
    if (times.empty()) continue;
    RETURN_IF_ERROR(lane_->Finish());
    times[i].end = std::chrono::steady_clock::now();
  }
  return absl::OkStatus();
}

absl::Status CudaSession::Finish() {
  if (lane_ == nullptr) return absl::OkStatus();
  const absl::Status entered = context_->Enter();
  const absl::Status finished = entered.ok() ? lane_->Finish() : entered;
  lane_ = nullptr;
  return finished;
}

}  // namespace tensord::cuda
