#include "server/observe/metrics/segment_metrics.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "server/observe/metrics/metric_sample.h"

namespace tensord::server {

std::vector<prometheus::MetricFamily> SegmentMetrics::Collect() const {
  const std::vector<double> bounds = BoundsOf(Metric::segment_seconds);
  prometheus::MetricFamily family = EmptyFamily(Metric::segment_seconds);
  for (const auto& [key, series] : times_->Read()) {
    prometheus::ClientMetric metric;
    const absl::string_view device = key.first;
    const std::string backend(device.substr(0, device.find(':')));
    metric.label = {{"backend", backend}, {"device", key.first}, {"op", key.second}};
    uint64_t below = 0;
    for (size_t i = 0; i < series.counts.size(); ++i) {
      below += static_cast<uint64_t>(series.counts[i]);
      const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
      metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = bound});
    }
    metric.histogram.sample_count = below;
    metric.histogram.sample_sum = absl::ToDoubleSeconds(series.sum);
    family.metric.push_back(std::move(metric));
  }
  return {std::move(family)};
}

}  // namespace tensord::server
