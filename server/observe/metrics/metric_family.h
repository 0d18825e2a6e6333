#ifndef TENSORD_SERVER_OBSERVE_METRICS_METRIC_FAMILY_H_
#define TENSORD_SERVER_OBSERVE_METRICS_METRIC_FAMILY_H_

#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "server/observe/metrics/metrics.h"

namespace tensord::server {

// The family of a metric with the name and the help that metrics.def gives it; the registry owns it.
template <typename T>
prometheus::Family<T>& AddFamily(Metric index, prometheus::Registry& registry) {
  const MetricInfo& info = AllMetrics()[static_cast<size_t>(index)];
  return prometheus::detail::Builder<T>().Name(std::string(info.name)).Help(std::string(info.help)).Register(registry);
}

// Returns a series of a histogram, with the buckets that metrics.def gives it.
inline prometheus::Histogram& AddSeries(Metric index, const prometheus::Labels& labels,
                                        prometheus::Family<prometheus::Histogram>& family) {
  return family.Add(labels, BoundsOf(index));
}

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRIC_FAMILY_H_
