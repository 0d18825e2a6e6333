#ifndef TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_
#define TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_builder.h"
#include "engine/tensor/dim_expr.h"

namespace tensord {

// The new sizes by symbol: sizes that a run decides, as the type rule of an op with an expand rule named them.
using ExpandedSizes = absl::flat_hash_map<std::string, DimExpr>;

// Replaces every node whose op has an expand rule by the rule's nodes. Not a pass: no backend knows such ops, so it
// always runs, before the passes. The graph has types, and keeps them for known sizes; a size of a result may become an
// expression that a guard makes equal. `plans`, if not null, gets the rules' plans, in the order of the nodes. `sizes`,
// if not null, gets the new expressions of sizes that a run decides, because older guards speak of the symbols.
// LIMIT_EXCEEDED if the graph gets more than `most_nodes`. Refusals name the node.
absl::Status ExpandFamilies(Graph* graph, std::vector<ContractionPlan>* plans = nullptr, ExpandedSizes* sizes = nullptr,
                            int64_t most_nodes = kAnyNodes);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_
