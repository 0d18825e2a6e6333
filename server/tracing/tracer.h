#ifndef TENSORD_SERVER_TRACING_TRACER_H_
#define TENSORD_SERVER_TRACING_TRACER_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"
#include "server/observe/metrics/trace_metrics.h"
#include "server/observe/records/request_record.h"
#include "server/tracing/otlp_exporter.h"
#include "server/tracing/span_queue.h"

namespace tensord::server {

// Decides which calls are traced, and hands their records to the thread that exports them. A caller's traceparent says
// whether its call is sampled; the ratio applies to calls without one. Thread-safe; never waits for the collector. The
// metrics and the log must outlive it.
class Tracer {
 public:
  struct Options {
    double sample_ratio = 0;
    int64_t queue_spans = 16384;
    int64_t segments = 64;  // of one run that get a span
    OtlpExporter::Options exporter;
  };

  Tracer(Options options, TraceMetrics* metrics, Log* log);

  // A call came with this trace, or with none: gives it a span, or says that it is not sampled.
  void Begin(CallTrace* trace) const;
  // The same for one request of a stream.
  static CallTrace Under(const CallTrace& call);
  // A call is over; sampled or not.
  void Ended(const RequestRecord& record);

  // Sets the ratio of later calls.
  void SetSampleRatio(double ratio);
  // Takes no more; sends the waiting calls, until that time of SteadyNow at most.
  void Finish(absl::Time until) { exporter_.Finish(until); }

 private:
  const int64_t max_segments_;
  std::atomic<uint64_t> sampled_below_;  // of the last 56 bits of a trace id
  TraceMetrics* const metrics_;
  SpanQueue queue_;
  OtlpExporter exporter_;  // last: its thread takes from the queue
};

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_TRACER_H_
