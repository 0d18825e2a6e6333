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

// What a caller says of the trace that its call belongs to, by the W3C recommendation "Trace Context".
struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};  // the caller's span
  bool sampled = false;
};

// The value of `traceparent`. Nothing where it is not what the recommendation says, to the letter: of a later version
// is read what version 00 has.
std::optional<TraceContext> ParseTraceparent(absl::string_view value);

// The value of `tracestate`, several of them joined by commas, as it is passed on: without empty members, at most 512
// bytes, for which whole members go, first the long ones and then the last. Nothing where it is malformed, has more
// than 32 members or a key twice.
std::optional<std::string> ParseTracestate(absl::string_view value);

inline bool IsSet(const TraceId& id) { return id != TraceId{}; }

// 32 digits of lower-case hexadecimal; empty where it is not set.
std::string ToHex(const TraceId& id);

// Random and set. Thread-safe; good enough to tell calls apart, for nothing that must be kept secret.
TraceId NewTraceId();
SpanId NewSpanId();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_OBSERVE_RECORDS_TRACE_CONTEXT_H_
