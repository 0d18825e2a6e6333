#ifndef TENSORD_SERVER_TRACING_SPAN_QUEUE_H_
#define TENSORD_SERVER_TRACING_SPAN_QUEUE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/tracing/traced_request.h"

namespace tensord::server {

// Sampled calls that wait for the thread that exports them, bounded by the spans that they become and by their bytes,
// kSpanBytes for each of those spans. Thread-safe.
class SpanQueue {
 public:
  static constexpr int64_t kSpanBytes = 2048;

  explicit SpanQueue(int64_t max_spans) : max_spans_(max_spans) {}

  // Returns false if there was no room. After Close there is none.
  bool Push(TracedRequest request);

  // Waits until `spans` are there, or `wait` is over and any are, or it is closed; takes calls of that many spans, or
  // one call if that has more. Empty: it is closed, and nothing is left.
  std::vector<TracedRequest> Take(int64_t spans, absl::Duration wait);

  void Close();
  // Returns the remaining calls, for nobody to take any more.
  std::vector<TracedRequest> Clear();

 private:
  const int64_t max_spans_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<TracedRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  int64_t spans_ ABSL_GUARDED_BY(mutex_) = 0;   // of those that wait
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;   // likewise
  int64_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // spans to wake the taker for
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_SPAN_QUEUE_H_
