#include "server/observe/segment_metrics.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "server/observe/metric_sample.h"

namespace tensord::server {

std::vector<prometheus::MetricFamily> SegmentMetrics::Collect() const {
  prometheus::MetricFamily family = EmptyFamily(Metric::segment_seconds);
  for (const auto& [key, series] : times_->Read()) {
    prometheus::ClientMetric metric;
    metric.label = {{"device", key.first}, {"op", key.second}};
    uint64_t below = 0;
    for (size_t i = 0; i < series.counts.size(); ++i) {
      below += static_cast<uint64_t>(series.counts[i]);
      const double bound = i < SegmentTimes::kNumBounds ? absl::ToDoubleSeconds(SegmentTimes::Bound(i))
                                                        : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = bound});
    }
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = absl::ToDoubleSeconds(series.sum);
    family.metric.push_back(std::move(metric));
  }
  return {std::move(family)};
}

}  // namespace tensord::server
