#include "backends/cuda/device/timing_events.h"

#include "engine/base/status_macros.h"

namespace tensord::cuda {

// The driver keeps an event that the stream has not come to until it has. Errors change nothing any more.
TimingEvents::~TimingEvents() {
  if (all_.empty() || !context_->Enter().ok()) return;
  for (const CuEvent event : all_) context_->driver().cuEventDestroy_v2(event);
}

absl::StatusOr<CuEvent> TimingEvents::Record(Lane* lane) {
  if (idle_.empty()) {
    CuEvent made = nullptr;
    ASSIGN_OR_RETURN(const bool is_made,
                     HasSucceeded(context_->driver().cuEventCreate(&made, kCuEventBlockingSync), "cuEventCreate"));
    if (!is_made) return CuEvent{nullptr};
    all_.push_back(made);
    idle_.push_back(made);
  }
  const CuEvent event = idle_.back();
  bool is_recorded = false;
  RETURN_IF_ERROR(lane->Enqueue([&](CuStream stream) -> absl::Status {
    ASSIGN_OR_RETURN(is_recorded, HasSucceeded(context_->driver().cuEventRecord(event, stream), "cuEventRecord"));
    return absl::OkStatus();
  }));
  if (!is_recorded) return CuEvent{nullptr};
  idle_.pop_back();
  return event;
}

absl::StatusOr<std::optional<std::chrono::nanoseconds>> TimingEvents::Between(CuEvent from, CuEvent to) {
  using Time = std::optional<std::chrono::nanoseconds>;
  if (from == nullptr || to == nullptr) return Time();
  float milliseconds = 0;
  ASSIGN_OR_RETURN(const bool is_known,
                   HasSucceeded(context_->driver().cuEventElapsedTime(&milliseconds, from, to), "cuEventElapsedTime"));
  if (!is_known) return Time();
  return Time(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double, std::milli>(milliseconds)));
}

void TimingEvents::Return(CuEvent event) {
  if (event != nullptr) idle_.push_back(event);
}

absl::StatusOr<bool> TimingEvents::HasSucceeded(CuResult result, absl::string_view function) {
  const absl::Status status = context_->Check(result, function);
  if (context_->is_lost() && !status.ok()) return status;
  return status.ok();
}

}  // namespace tensord::cuda
