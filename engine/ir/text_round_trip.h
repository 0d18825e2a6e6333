#ifndef TENSORD_ENGINE_IR_TEXT_ROUND_TRIP_H_
#define TENSORD_ENGINE_IR_TEXT_ROUND_TRIP_H_

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/op_registry.h"

namespace tensord {

// Returns the graph as its text form says it: printed by PrintGraph and read by ParseGraph. INTERNAL if the text cannot
// be read, means another graph (CanonicalBytes), or prints as another text.
absl::StatusOr<Graph> ReadBackFromText(const Graph& graph, const OpRegistry& registry);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_TEXT_ROUND_TRIP_H_
