#include "server/observe/metrics/metric_sample.h"

#include <string>
#include <utility>

namespace tensord::server {

prometheus::MetricFamily EmptyFamily(Metric index) {
  const MetricInfo& info = AllMetrics()[static_cast<size_t>(index)];
  prometheus::MetricFamily family;
  family.name = std::string(info.name);
  family.help = std::string(info.help);
  family.type = info.type == "counter" ? prometheus::MetricType::Counter
                : info.type == "gauge" ? prometheus::MetricType::Gauge
                                       : prometheus::MetricType::Histogram;
  return family;
}

prometheus::MetricFamily FamilyOf(Metric index, std::vector<MetricSample> samples) {
  prometheus::MetricFamily family = EmptyFamily(index);
  family.metric.reserve(samples.size());
  for (MetricSample& sample : samples) {
    prometheus::ClientMetric metric;
    metric.label = std::move(sample.labels);
    (family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = sample.value;
    family.metric.push_back(std::move(metric));
  }
  return family;
}

prometheus::MetricFamily FamilyOf(Metric index, double value) {
  std::vector<MetricSample> samples(1);
  samples.front().value = value;
  return FamilyOf(index, std::move(samples));
}

}  // namespace tensord::server
