#include "backends/cuda/work_ahead.h"

#include "engine/base/status_macros.h"

namespace tensord::cuda {

// The driver keeps an event that the stream has not come to until it has. Errors change nothing any more.
WorkAhead::~WorkAhead() {
  for (const Group& group : marked_) idle_.push_back(group.done);
  if (begun_ != nullptr) idle_.push_back(begun_);
  if (idle_.empty() || !context_->Enter().ok()) return;
  for (const CuEvent event : idle_) context_->driver().cuEventDestroy_v2(event);
}

absl::Status WorkAhead::Begin(StepTimes* times, Lane* lane) {
  if (times->OfAll(unknown()) < most_ / kGroups) return absl::OkStatus();
  ASSIGN_OR_RETURN(begun_, Record(lane));
  times_ = times;
  return absl::OkStatus();
}

bool WorkAhead::HasRoomFor(size_t step) const {
  if (times_ == nullptr || ahead_.count() == 0) return true;
  return ahead_ + times_->Of(step, step + 1, unknown()) <= most_;
}

absl::Status WorkAhead::WaitForSome(Lane* lane) {
  if (marked_.empty()) RETURN_IF_ERROR(Mark(lane));
  RETURN_IF_ERROR(lane->WaitFor(marked_.front().done));
  return TakeOldest();
}

absl::Status WorkAhead::Add(size_t begin, size_t end, Lane* lane) {
  if (times_ == nullptr) return absl::OkStatus();
  const Nanoseconds time = times_->Of(begin, end, unknown());
  if (open_.time.count() == 0) open_.begin = begin;
  open_.end = end;
  open_.time += time;
  ahead_ += time;
  return open_.time < most_ / kGroups ? absl::OkStatus() : Mark(lane);
}

absl::Status WorkAhead::Read() {
  while (!marked_.empty()) RETURN_IF_ERROR(TakeOldest());
  return absl::OkStatus();
}

absl::StatusOr<CuEvent> WorkAhead::Record(Lane* lane) {
  if (idle_.empty()) {
    CuEvent made = nullptr;
    RETURN_IF_ERROR(context_->Check(context_->driver().cuEventCreate(&made, kCuEventBlockingSync), "cuEventCreate"));
    idle_.push_back(made);
  }
  const CuEvent event = idle_.back();
  RETURN_IF_ERROR(lane->Enqueue([&](CuStream stream) {
    return context_->Check(context_->driver().cuEventRecord(event, stream), "cuEventRecord");
  }));
  idle_.pop_back();
  return event;
}

absl::Status WorkAhead::Mark(Lane* lane) {
  ASSIGN_OR_RETURN(open_.done, Record(lane));
  marked_.push_back(open_);
  open_ = Group();
  return absl::OkStatus();
}

absl::Status WorkAhead::TakeOldest() {
  const Group group = marked_.front();
  float milliseconds = 0;
  RETURN_IF_ERROR(
      context_->Check(context_->driver().cuEventElapsedTime(&milliseconds, begun_, group.done), "cuEventElapsedTime"));
  const std::chrono::duration<double, std::milli> took(milliseconds);
  times_->Learn(group.begin, group.end, std::chrono::duration_cast<Nanoseconds>(took), unknown());
  ahead_ -= group.time;
  marked_.pop_front();
  idle_.push_back(begun_);
  begun_ = group.done;
  return absl::OkStatus();
}

}  // namespace tensord::cuda
