#ifndef TENSORD_ENGINE_IR_SIZED_GRAPH_H_
#define TENSORD_ENGINE_IR_SIZED_GRAPH_H_

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/size_binding.h"

namespace tensord {

// Returns the graph with the binding's sizes in the place of its symbols, in the inputs' types and in attributes; sizes
// that only a run decides stay. The types of results are unset. Refuses as the evaluation of a size does.
absl::StatusOr<Graph> WithSizes(const Graph& graph, const SizeBinding& sizes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_SIZED_GRAPH_H_
