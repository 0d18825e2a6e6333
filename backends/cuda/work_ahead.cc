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

void WorkAhead::SetParts(size_t step, int64_t parts) {
  if (times_ != nullptr) times_->SetParts(step, parts);
}

bool WorkAhead::HasRoomFor(size_t step) const {
  if (times_ == nullptr || ahead_.count() == 0) return true;
  return ahead_ + times_->OfPart(step, unknown()) <= most_;
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

absl::Status WorkAhead::Add(size_t step, int64_t parts, Lane* lane) {
  if (times_ == nullptr) return absl::OkStatus();
  Open(step, parts);
  return open_.time < most_ / kGroups ? absl::OkStatus() : Mark(lane);
}

absl::Status WorkAhead::AddAll(size_t steps, Lane* lane) {
  if (times_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < steps; ++i) Open(i, times_->PartsOf(i));
  return Mark(lane);
}

void WorkAhead::Open(size_t step, int64_t parts) {
  const Nanoseconds time = times_->OfPart(step, unknown()) * parts;
  open_.time += time;
  ahead_ += time;
  if (!open_.work.empty() && open_.work.back().step == step) {
    open_.work.back().parts += parts;
  } else {
    open_.work.push_back({.step = step, .parts = parts});
  }
}

absl::Status WorkAhead::Read() {
  while (!marked_.empty()) RETURN_IF_ERROR(TakeOldest());
  return absl::OkStatus();
}

absl::Status WorkAhead::Mark(Lane* lane) {
  if (open_.work.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(open_.done, events_.Record(lane));
  if (open_.done == nullptr) return absl::OkStatus();
  marked_.push_back(std::exchange(open_, Group()));
  return absl::OkStatus();
}

absl::Status WorkAhead::TakeOldest() {
  const Group& group = marked_.front();
  ASSIGN_OR_RETURN(const std::optional<Nanoseconds> took, events_.Between(begun_, group.done));
  if (took.has_value()) times_->Learn(group.work, *took, unknown());
  ahead_ -= group.time;
  events_.Return(std::exchange(begun_, group.done));
  marked_.pop_front();
  return absl::OkStatus();
}

}  // namespace tensord::cuda
