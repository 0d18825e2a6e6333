#ifndef TENSORD_SERVER_OBSERVE_METRICS_PROCESS_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_PROCESS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::server {

// The numbers in /proc/PID/stat; times in ticks of the kernel's clock.
struct ProcessStat {
  int64_t user_ticks = 0;
  int64_t system_ticks = 0;
  int64_t threads = 0;
  int64_t start_ticks = 0;  // since the machine started
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};

// Returns nothing if the text is no such line.
std::optional<ProcessStat> ParseProcessStat(absl::string_view text);

// The process as its system sees it, read from /proc when Prometheus asks. Unreadable values are left out. Thread-safe.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_PROCESS_METRICS_H_
