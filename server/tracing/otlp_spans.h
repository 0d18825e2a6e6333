#ifndef TENSORD_SERVER_TRACING_OTLP_SPANS_H_
#define TENSORD_SERVER_TRACING_OTLP_SPANS_H_

#include "server/tracing/otlp.pb.h"
#include "server/tracing/traced_request.h"

namespace tensord::server {

// Adds the spans of a call: its own, of kind SERVER with the attributes of OpenTelemetry's conventions for RPC, below
// it one a stage, and below the stage "compute" one a segment. A request of an ExecuteStream has a span of kind
// INTERNAL below the stream's. A stage that came several times has one span, from when it first began, as long as all
// together.
void AddSpans(const TracedRequest& request, otlp::ScopeSpans* spans);

// A text attribute, of a resource too.
void SetAttribute(absl::string_view key, absl::string_view value, otlp::KeyValue* attribute);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_OTLP_SPANS_H_
