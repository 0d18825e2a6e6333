#ifndef TENSORD_CLIENTS_LOAD_LATENCY_HISTOGRAM_H_
#define TENSORD_CLIENTS_LOAD_LATENCY_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace tensord::load {

// Counts of durations, from 1 ns to 19 hours (longer ones count as that), in buckets that are at most 1/64 as wide as
// the durations in them: a quantile is off by less than 1 %, and memory is 21 KB however many are added. A value type;
// thread-compatible.
class LatencyHistogram {
 public:
  // A negative duration counts as 0.
  void Add(absl::Duration duration) { AddNanoseconds(absl::ToInt64Nanoseconds(duration)); }
  void AddNanoseconds(int64_t nanoseconds);
  // Adds everything that was added to `other`.
  void Merge(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  // All of these are 0 if nothing was added. Smallest, largest and mean are exact.
  absl::Duration smallest() const { return absl::Nanoseconds(smallest_); }
  absl::Duration largest() const { return absl::Nanoseconds(largest_); }
  absl::Duration mean() const;
  // Returns the least duration that a share of at least `fraction` in [0, 1] does not exceed.
  absl::Duration Quantile(double fraction) const;

 private:
  std::vector<int64_t> buckets_;  // empty until the first is added
  int64_t count_ = 0;
  int64_t smallest_ = 0;
  int64_t largest_ = 0;
  double sum_ = 0;
};

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_LATENCY_HISTOGRAM_H_
