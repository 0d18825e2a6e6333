#include "backends/cuda/work_ahead.h"

#include <optional>

#include "engine/base/status_macros.h"

namespace tensord::cuda {

absl::Status WorkAhead::Begin(StepTimes* times, Lane* lane) {
  if (times->OfAll(unknown()) < most_ / kGroups) return absl::OkStatus();
  ASSIGN_OR_RETURN(begun_, events_.Record(lane));
  times_ = times;
  return absl::OkStatus();
}

bool WorkAhead::HasRoomFor(size_t step) const {
  if (times_ == nullptr || ahead_.count() == 0) return true;
  return ahead_ + times_->Of(step, step + 1, unknown()) <= most_;
}

absl::Status WorkAhead::WaitForSome(Lane* lane) {
  if (marked_.empty()) RETURN_IF_ERROR(Mark(lane));
  if (!marked_.empty()) {
    RETURN_IF_ERROR(lane->WaitFor(marked_.front().done));
    return TakeOldest();
  }
  RETURN_IF_ERROR(lane->Finish());
  ahead_ = Nanoseconds(0);
  open_ = Group();
  events_.Return(std::exchange(begun_, nullptr));
  return absl::OkStatus();
}

absl::Status WorkAhead::Add(size_t begin, size_t end, Lane* lane) {
  if (times_ == nullptr) return absl::OkStatus();
  const Nanoseconds time = times_->Of(begin, end, unknown());
  if (open_.begin == open_.end) open_.begin = begin;
  open_.end = end;
  open_.time += time;
  ahead_ += time;
  return open_.time < most_ / kGroups ? absl::OkStatus() : Mark(lane);
}

absl::Status WorkAhead::Read() {
  while (!marked_.empty()) RETURN_IF_ERROR(TakeOldest());
  return absl::OkStatus();
}

absl::Status WorkAhead::Mark(Lane* lane) {
  if (open_.begin == open_.end) return absl::OkStatus();
  ASSIGN_OR_RETURN(open_.done, events_.Record(lane));
  if (open_.done == nullptr) return absl::OkStatus();
  marked_.push_back(open_);
  open_ = Group();
  return absl::OkStatus();
}

absl::Status WorkAhead::TakeOldest() {
  const Group group = marked_.front();
  ASSIGN_OR_RETURN(const std::optional<Nanoseconds> took, events_.Between(begun_, group.done));
  if (took.has_value()) times_->Learn(group.begin, group.end, *took, unknown());
  ahead_ -= group.time;
  marked_.pop_front();
  events_.Return(begun_);
  begun_ = group.done;
  return absl::OkStatus();
}

}  // namespace tensord::cuda
