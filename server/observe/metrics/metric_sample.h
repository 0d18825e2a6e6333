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

// A counter or gauge of metrics.def with these values.
prometheus::MetricFamily FamilyOf(Metric index, std::vector<MetricSample> samples);
// Likewise, with one value and no labels.
prometheus::MetricFamily FamilyOf(Metric index, double value);
// With the name, help and type that metrics.def says, and nothing in it.
prometheus::MetricFamily EmptyFamily(Metric index);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRIC_SAMPLE_H_
