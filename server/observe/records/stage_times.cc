#include "server/observe/records/stage_times.h"

#include <algorithm>
#include <charconv>

namespace tensord::server {
namespace {

constexpr size_t LongestName() {
  size_t longest = 0;
  for (const absl::string_view name : kStageNames) longest = std::max(longest, name.size());
  return longest;
}

constexpr size_t kLongestName = LongestName();

}  // namespace

void StageTimes::EndAt(Stage stage, Clock::time_point end) {
  end = std::max(end, last_);
  Time& time = times_[static_cast<size_t>(stage)];
  if (time.begin_ns < 0) time.begin_ns = std::chrono::nanoseconds(last_ - start_).count();
  time.ns += std::chrono::nanoseconds(end - last_).count();
  last_ = end;
}

void StageTimes::EndWith(Stage stage, Stage inner, absl::Duration inner_time) {
  const Clock::time_point end = Clock::now();
  EndAt(stage, end - std::chrono::nanoseconds(absl::ToInt64Nanoseconds(inner_time)));
  EndAt(inner, end);
}

std::optional<absl::Duration> StageTimes::Of(Stage stage) const {
  const Time& time = times_[static_cast<size_t>(stage)];
  if (time.begin_ns < 0) return std::nullopt;
  return absl::Nanoseconds(time.ns);
}

absl::Duration StageTimes::BeginOf(Stage stage) const {
  return absl::Nanoseconds(std::max<int64_t>(times_[static_cast<size_t>(stage)].begin_ns, 0));
}

std::string StageTimes::ToText() const {
  constexpr size_t kMostDigits = 20;
  constexpr size_t kMostOfAStage = kLongestName + kMostDigits + 2;
  std::array<char, kNumStages * kMostOfAStage> text;
  char* end = text.data();
  for (size_t i = 0; i < kNumStages; ++i) {
    if (times_[i].begin_ns < 0) continue;
    if (end != text.data()) *end++ = ',';
    end = std::copy(kStageNames[i].begin(), kStageNames[i].end(), end);
    *end++ = '=';
    end = std::to_chars(end, end + kMostDigits, times_[i].ns / 1000).ptr;
  }
  return std::string(text.data(), end);
}

}  // namespace tensord::server
