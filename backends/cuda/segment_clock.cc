#include "backends/cuda/segment_clock.h"

#include <algorithm>
#include <optional>

#include "engine/base/status_macros.h"

namespace tensord::cuda {
namespace {

using Nanoseconds = std::chrono::nanoseconds;

}  // namespace

absl::Status SegmentClock::Mark(Lane* lane) {
  if (marks_.empty()) begun_ = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(Record(lane));
  if (marks_.size() < kMostEvents) return absl::OkStatus();
  RETURN_IF_ERROR(lane->Finish());
  RETURN_IF_ERROR(Read());
  begun_ = std::chrono::steady_clock::now();
  return Record(lane);
}

absl::Status SegmentClock::Record(Lane* lane) {
  ASSIGN_OR_RETURN(const CuEvent event, events_.Record(lane));
  marks_.push_back(event);
  return absl::OkStatus();
}

absl::Status SegmentClock::Read() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Nanoseconds> durations;
  Nanoseconds all{0};
  for (size_t i = 1; i < marks_.size(); ++i) {
    ASSIGN_OR_RETURN(const std::optional<Nanoseconds> took, events_.Between(marks_[i - 1], marks_[i]));
    durations.push_back(took.value_or(Nanoseconds(0)));
    all += durations.back();
  }
  for (const CuEvent mark : marks_) events_.Return(mark);
  marks_.clear();
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
