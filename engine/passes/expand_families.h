#ifndef TENSORD_ENGINE_PASSES_EXPAND_FAMILIES_H_
#define TENSORD_ENGINE_PASSES_EXPAND_FAMILIES_H_

#include <vector>

#include "absl/status/status.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/graph.h"

namespace tensord {

// Writes every node whose op has an expand rule as what the rule makes of it. Not a pass: no backend knows such ops, so
// it is always run, before the passes. The graph has types, and keeps them where sizes are known; a size of a result
// may become an expression that a guard says to be equal. `plans`, where it is not null, gets what rules planned, in
// the order of the nodes. Refusals name the node.
absl::Status ExpandFamilies(Graph* graph, std::vector<ContractionPlan>* plans = nullptr);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_EXPAND_FAMILIES_H_
