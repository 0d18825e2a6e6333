#ifndef TENSORD_SERVER_TRACING_TRACED_REQUEST_H_
#define TENSORD_SERVER_TRACING_TRACED_REQUEST_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "server/observe/records/request_record.h"

namespace tensord::server {

// Longer texts are cut.
inline constexpr size_t kMaxSpanNameBytes = 128, kMaxSpanMessageBytes = 512;

// A sampled call that is over, on its way to become spans.
struct TracedRequest {
  RequestRecord record;
  absl::Time end;
};

// Makes the part of the record that becomes spans: so many of its segments, without the names of their nodes.
TracedRequest MakeTracedRequest(const RequestRecord& record, size_t max_segments, absl::Time end);

// Returns the bytes that it holds while it waits.
int64_t HeldBytes(const TracedRequest& request);

// Stages shorter than this get no span of their own.
inline constexpr absl::Duration kShortestSpan = absl::Microseconds(1);

// Returns the number of spans that the call becomes: one for itself, one a stage, one a segment.
inline int64_t SpanCount(const RequestRecord& record) {
  int64_t count = 1;
  for (size_t i = 0; i < kNumStages; ++i) {
    if (record.stages.Of(static_cast<Stage>(i)).value_or(absl::ZeroDuration()) >= kShortestSpan) ++count;
  }
  return count + static_cast<int64_t>(record.segments.size());
}

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_TRACED_REQUEST_H_
