#ifndef TENSORD_SERVER_OBSERVE_METRICS_SEGMENT_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_SEGMENT_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "engine/runtime/devices/segment_times.h"

namespace tensord::server {

// The times of segments as a histogram. Thread-safe; the times must outlive it.
class SegmentMetrics : public prometheus::Collectable {
 public:
  explicit SegmentMetrics(const SegmentTimes* times) : times_(times) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const SegmentTimes* const times_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_SEGMENT_METRICS_H_
