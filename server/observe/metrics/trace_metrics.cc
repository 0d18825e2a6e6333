#include "server/observe/metrics/trace_metrics.h"

#include <string>

#include "server/observe/metrics/metric_family.h"

namespace tensord::server {

absl::string_view Name(SpanLoss loss) {
  switch (loss) {
    case SpanLoss::kQueueFull:
      return "queue_full";
    case SpanLoss::kUnavailable:
      return "unavailable";
    case SpanLoss::kRefused:
      return "refused";
    case SpanLoss::kShutdown:
      break;
  }
  return "shutdown";
}

TraceMetrics::TraceMetrics(prometheus::Registry& registry)
    : exported_(&AddFamily<prometheus::Counter>(Metric::trace_spans_exported, registry).Add({})) {
  auto& dropped = AddFamily<prometheus::Counter>(Metric::trace_spans_dropped, registry);
  for (size_t i = 0; i < kNumSpanLosses; ++i) {
    dropped_[i] = &dropped.Add({{"reason", std::string(Name(static_cast<SpanLoss>(i)))}});
  }
}

}  // namespace tensord::server
