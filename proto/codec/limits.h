#ifndef TENSORD_PROTO_CODEC_LIMITS_H_
#define TENSORD_PROTO_CODEC_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tensord::codec {

// The bounds of a graph or a tensor from outside. Declared in graph_limits.def; a value type.
struct GraphLimits {
#define TENSORD_GRAPH_LIMIT(name, value, doc) int64_t name = value;
#include "proto/codec/graph_limits.def"
#undef TENSORD_GRAPH_LIMIT
};

using GraphLimit = int64_t GraphLimits::*;

struct GraphLimitInfo {
  absl::string_view name;  // stable
  GraphLimit value;
  absl::string_view doc;
};

// Returns all limits, by name.
absl::Span<const GraphLimitInfo> AllGraphLimits();

// Fails with LIMIT_EXCEEDED, naming the limit, if `actual` is beyond it. `what` names the counted thing: "operands of
// the graph".
absl::Status CheckLimit(const GraphLimits& limits, GraphLimit limit, int64_t actual, absl::string_view what);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_LIMITS_H_
