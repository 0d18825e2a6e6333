#include "backends/cuda/segment_clock.h"

#include <algorithm>

#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

Nanoseconds OfMilliseconds(float milliseconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double, std::milli>(milliseconds));
}

}  // namespace

// The driver keeps an event that the stream has not come to until it has. Errors change nothing any more.
SegmentClock::~SegmentClock() {
  if (events_.empty() || !context_->Enter().ok()) return;
  for (const CuEvent event : events_) context_->driver().cuEventDestroy_v2(event);
}

absl::Status SegmentClock::Mark(Lane* lane) {
  if (recorded_ == 0) begun_ = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(Record(lane));
  if (recorded_ < kMostEvents) return absl::OkStatus();
  RETURN_IF_ERROR(lane->Finish());
  RETURN_IF_ERROR(Read());
  begun_ = std::chrono::steady_clock::now();
  return Record(lane);
}

absl::Status SegmentClock::Record(Lane* lane) {
  if (recorded_ == events_.size()) {
    CuEvent event = nullptr;
    RETURN_IF_ERROR(context_->Check(context_->driver().cuEventCreate(&event, kCuEventBlockingSync), "cuEventCreate"));
    events_.push_back(event);
  }
  RETURN_IF_ERROR(lane->Enqueue([this](CuStream stream) {
    return context_->Check(context_->driver().cuEventRecord(events_[recorded_], stream), "cuEventRecord");
  }));
  ++recorded_;
  return absl::OkStatus();
}

absl::Status SegmentClock::Read() {
  const auto now = std::chrono::steady_clock::now();
  if (recorded_ == 0) return absl::OkStatus();
  std::vector<Nanoseconds> durations;
  Nanoseconds all{0};
  for (size_t i = 1; i < recorded_; ++i) {
    float milliseconds = 0;
    RETURN_IF_ERROR(context_->Check(context_->driver().cuEventElapsedTime(&milliseconds, events_[i - 1], events_[i]),
                                    "cuEventElapsedTime"));
    durations.push_back(OfMilliseconds(milliseconds));
    all += durations.back();
  }
  recorded_ = 0;
  // It was over a moment before now, and began after its event was enqueued.
  auto begin = std::max(begun_, now - all);
  for (const Nanoseconds duration : durations) {
    times_.front() = {.start = begin, .end = begin + duration};
    begin += duration;
    times_.remove_prefix(1);
  }
  return absl::OkStatus();
}

}  // namespace tensord::cuda
