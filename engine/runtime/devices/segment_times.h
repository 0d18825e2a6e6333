#ifndef TENSORD_ENGINE_RUNTIME_DEVICES_SEGMENT_TIMES_H_
#define TENSORD_ENGINE_RUNTIME_DEVICES_SEGMENT_TIMES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/exec/binding/segment_profile.h"

namespace tensord {

// Times of segments, by device and operation: of one run in kEvery, so that the clock is no cost to speak of.
// Thread-safe.
class SegmentTimes {
 public:
  // A prime, so that programs that take turns are all met.
  static constexpr uint64_t kEvery = 17;
  // Operations that are told apart; all others are one.
  static constexpr size_t kMaxOps = 100;
  static constexpr char kOtherOps[] = "other";
  // Bounds of 1 µs, 4 µs, … 16.8 s, and one for longer segments.
  static constexpr int64_t kFirstBoundUs = 1;
  static constexpr int64_t kBoundFactor = 4;
  static constexpr size_t kNumBounds = 13;
  static absl::Duration Bound(size_t i) {
    int64_t bound_us = kFirstBoundUs;
    for (size_t step = 0; step < i; ++step) bound_us *= kBoundFactor;
    return absl::Microseconds(bound_us);
  }

  struct Series {
    std::array<int64_t, kNumBounds + 1> counts{};  // not cumulative
    absl::Duration sum;
  };
  using Key = std::pair<std::string, std::string>;  // device, operation

  // Tells whether the run that begins now is to be timed.
  bool TimesThisRun() { return runs_.fetch_add(1, std::memory_order_relaxed) % kEvery == 0; }
  void Add(absl::string_view device, const RunTimes& times);
  std::map<Key, Series> Read() const;

 private:
  Series& Find(absl::string_view device, absl::string_view op) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<uint64_t> runs_{0};
  mutable Mutex mutex_;
  std::map<Key, Series> series_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_RUNTIME_DEVICES_SEGMENT_TIMES_H_
