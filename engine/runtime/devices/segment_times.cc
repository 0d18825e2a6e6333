#include "engine/runtime/devices/segment_times.h"

namespace tensord {

void SegmentTimes::Add(absl::string_view device, const RunTimes& times) {
  MutexLock lock(&mutex_);
  for (const RunTimes::Part& part : times.parts) {
    for (size_t i = 0; i < part.times.size(); ++i) {
      const absl::Duration taken = absl::FromChrono(part.times[i].end - part.times[i].start);
      Series& series = Find(device, part.bound->segment(i).op->name);
      size_t bucket = 0;
      while (bucket < kNumBounds && taken > Bound(bucket)) ++bucket;
      ++series.counts[bucket];
      series.sum += taken;
    }
  }
}

SegmentTimes::Series& SegmentTimes::Find(absl::string_view device, absl::string_view op) {
  Key key(device, op);
  const auto found = series_.find(key);
  if (found != series_.end()) return found->second;
  if (series_.size() >= kMaxOps) key.second = kOtherOps;
  return series_[std::move(key)];
}

std::map<SegmentTimes::Key, SegmentTimes::Series> SegmentTimes::Read() const {
  MutexLock lock(&mutex_);
  return series_;
}

}  // namespace tensord
