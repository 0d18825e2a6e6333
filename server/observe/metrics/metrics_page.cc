#include "server/observe/metrics/metrics_page.h"

#include <cstddef>
#include <utility>

#include "server/observe/metrics/metric_sample.h"

namespace tensord::server {
namespace {

// A histogram is a series a bucket, one for its sum and one for its count.
size_t SeriesOf(const prometheus::MetricFamily& family) {
  if (family.type != prometheus::MetricType::Histogram) return family.metric.size();
  size_t series = 0;
  for (const prometheus::ClientMetric& metric : family.metric) series += metric.histogram.bucket.size() + 2;
  return series;
}

}  // namespace

MetricsPage::MetricsPage(std::vector<std::shared_ptr<prometheus::Collectable>> sources)
    : sources_(std::move(sources)) {}

std::vector<prometheus::MetricFamily> MetricsPage::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& source : sources_) {
    for (prometheus::MetricFamily& family : source->Collect()) families.push_back(std::move(family));
  }
  size_t series = 1;  // this one
  for (const prometheus::MetricFamily& family : families) series += SeriesOf(family);
  families.push_back(FamilyOf(Metric::metrics_series, static_cast<double>(series)));
  return families;
}

}  // namespace tensord::server
