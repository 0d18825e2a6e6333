#ifndef TENSORD_SERVER_OBSERVE_METRICS_TRACE_METRICS_H_
#define TENSORD_SERVER_OBSERVE_METRICS_TRACE_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::server {

// The reason why spans never came to the collector.
enum class SpanLoss : uint8_t {
  kQueueFull,    // too many waited for it
  kUnavailable,  // it could not be reached for as long as is tried
  kRefused,      // it did not want them
  kShutdown,     // the server's end came first
};

inline constexpr size_t kNumSpanLosses = 4;

// "queue_full", "unavailable", "refused", "shutdown".
absl::string_view Name(SpanLoss loss);

// Counts of spans. Thread-safe. The registry must outlive it.
class TraceMetrics {
 public:
  explicit TraceMetrics(prometheus::Registry& registry);

  void SpansExported(int64_t count) { exported_->Increment(static_cast<double>(count)); }
  void SpansDropped(SpanLoss loss, int64_t count) {
    dropped_[static_cast<size_t>(loss)]->Increment(static_cast<double>(count));
  }

 private:
  prometheus::Counter* exported_;
  std::array<prometheus::Counter*, kNumSpanLosses> dropped_;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_METRICS_TRACE_METRICS_H_
