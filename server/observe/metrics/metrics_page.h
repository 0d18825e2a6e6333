#ifndef TENSORD_SERVER_OBSERVE_METRICS_METRICS_PAGE_H_
#define TENSORD_SERVER_OBSERVE_METRICS_METRICS_PAGE_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <vector>

namespace tensord::server {

// The page for Prometheus, of several sources, with its number of series. Shares the sources, which are thread-safe, as
// it is.
class MetricsPage : public prometheus::Collectable {
 public:
  explicit MetricsPage(std::vector<std::shared_ptr<prometheus::Collectable>> sources);

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::vector<std::shared_ptr<prometheus::Collectable>> sources_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_METRICS_PAGE_H_
