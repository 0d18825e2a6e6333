#include "proto/codec/limits.h"

#include "engine/base/refusal.h"

namespace tensord::codec {
namespace {

constexpr GraphLimitInfo kLimits[] = {
#define TENSORD_GRAPH_LIMIT(name, value, doc) {#name, &GraphLimits::name, doc},
#include "proto/codec/graph_limits.def"
#undef TENSORD_GRAPH_LIMIT
};

}  // namespace

absl::Span<const GraphLimitInfo> AllGraphLimits() { return kLimits; }

absl::Status CheckLimit(const GraphLimits& limits, GraphLimit limit, int64_t actual, absl::string_view what) {
  if (actual <= limits.*limit) return absl::OkStatus();
  absl::string_view name;
  for (const GraphLimitInfo& info : kLimits) {
    if (info.value == limit) name = info.name;
  }
  return RefuseLimit(name, limits.*limit, actual, what);
}

}  // namespace tensord::codec
