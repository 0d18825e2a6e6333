#include "server/tracing/tracer.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace tensord::server {
namespace {

constexpr int kRatioBits = 56;

uint64_t Threshold(double ratio) {
  return static_cast<uint64_t>(std::clamp(ratio, 0.0, 1.0) * static_cast<double>(uint64_t{1} << kRatioBits));
}

// Returns the bits of an id that other samplers look at too, so that all agree on a trace.
uint64_t LastBits(const TraceId& id) {
  uint64_t bits = 0;
  for (size_t i = id.size() - kRatioBits / 8; i < id.size(); ++i) bits = bits << 8 | id[i];
  return bits;
}

}  // namespace

Tracer::Tracer(Options options, TraceMetrics* metrics, Log* log)
    : max_segments_(options.segments),
      sampled_below_(Threshold(options.sample_ratio)),
      metrics_(metrics),
      queue_(options.queue_spans),
      exporter_(std::move(options.exporter), &queue_, metrics, log) {}

void Tracer::Begin(CallTrace* trace) const {
  TraceContext& context = trace->context;
  if (!IsSet(context.trace_id)) {
    const uint64_t below = sampled_below_.load(std::memory_order_relaxed);
    if (below == 0) return;
    const TraceId id = NewTraceId();
    if (LastBits(id) >= below) return;
    context.trace_id = id;
    context.sampled = true;
  }
  if (context.sampled) context.span_id = NewSpanId();
}

CallTrace Tracer::Under(const CallTrace& call) {
  CallTrace trace = call;
  if (!call.is_sampled()) return trace;
  trace.parent = call.context.span_id;
  trace.context.span_id = NewSpanId();
  return trace;
}

void Tracer::Ended(const RequestRecord& record) {
  if (!record.trace.is_sampled()) return;
  TracedRequest request = MakeTracedRequest(record, static_cast<size_t>(max_segments_), absl::Now());
  const int64_t count = SpanCount(request.record);
  if (!queue_.Push(std::move(request))) metrics_->SpansDropped(SpanLoss::kQueueFull, count);
}

void Tracer::SetSampleRatio(double ratio) { sampled_below_.store(Threshold(ratio), std::memory_order_relaxed); }

}  // namespace tensord::server
