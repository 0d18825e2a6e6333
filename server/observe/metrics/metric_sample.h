#ifndef TENSORD_SERVER_OBSERVE_METRICS_METRIC_SAMPLE_H_
#define TENSORD_SERVER_OBSERVE_METRICS_METRIC_SAMPLE_H_

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <vector>

#include "server/observe/metrics/metrics.h"

namespace tensord::server {

// One value that is read when Prometheus asks.
struct MetricSample {
  std::vector<prometheus::ClientMetric::Label> labels;
  double value = 0;
};

// Returns a counter or gauge of metrics.def with these values.
prometheus::MetricFamily FamilyOf(Metric index, std::vector<MetricSample> samples);
// Returns the family likewise, with one value and no labels.
prometheus::MetricFamily FamilyOf(Metric index, double value);
// Returns a family with the name, help and type of metrics.def, and nothing in it.
prometheus::MetricFamily EmptyFamily(Metric index);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRIC_SAMPLE_H_
