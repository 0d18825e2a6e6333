#ifndef TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_
#define TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/graph.h"
#include "engine/tensor/dim_expr.h"

namespace tensord {

// By the symbol of a size that a run decides, as the type rule of an op with an expand rule named it.
using ExpandedSizes = absl::flat_hash_map<std::string, DimExpr>;

// Writes every node whose op has an expand rule as what the rule makes of it. Not a pass: no backend knows such ops, so
// it is always run, before the passes. The graph has types, and keeps them where sizes are known; a size of a result
// may become an expression that a guard says to be equal. `plans`, where it is not null, gets what rules planned, in
// the order of the nodes. `sizes`, where it is not null, gets what sizes that a run decides have become: guards that
// were made before speak of those. Refusals name the node.
absl::Status ExpandFamilies(Graph* graph, std::vector<ContractionPlan>* plans = nullptr,
                            ExpandedSizes* sizes = nullptr);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_EXPAND_FAMILIES_H_
