#ifndef TENSORD_SERVER_OBSERVE_RECORDS_TRACE_CONTEXT_H_
#define TENSORD_SERVER_OBSERVE_RECORDS_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// The caller's trace that a call belongs to, by the W3C recommendation "Trace Context".
struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};  // the caller's span
  bool sampled = false;
};

// Parses the value of `traceparent`. Nothing unless it keeps to the recommendation to the letter; of a later version
// the fields of version 00 are read.
std::optional<TraceContext> ParseTraceparent(absl::string_view value);

// Returns the value of `tracestate` to pass on; several values are joined by commas. Leaves out empty members, and
// whole members beyond 512 bytes, first the long ones and then the last. Nothing if it is malformed, has more than 32
// members or a key twice.
std::optional<std::string> ParseTracestate(absl::string_view value);

inline bool IsSet(const TraceId& id) { return id != TraceId{}; }

// 32 digits of lower-case hexadecimal; empty if it is not set.
std::string ToHex(const TraceId& id);

// Random and set. Thread-safe; good enough to tell calls apart, for nothing that must be kept secret.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_TRACE_CONTEXT_H_
