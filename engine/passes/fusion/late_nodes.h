#ifndef TENSORD_ENGINE_PASSES_FUSION_LATE_NODES_H_
#define TENSORD_ENGINE_PASSES_FUSION_LATE_NODES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/passes/fusion/fusion_groups.h"

namespace tensord {

// Moves elementwise nodes from the group of their operands to the one group that reads them, where that costs no
// memory: the values that they read are in memory anyway, or small ones that they read repeated, and at most one of the
// others, no wider than the result, is new to the readers' group. The result is neither stored nor kept. A backward
// pass then computes the slope of a function from the value that it reads besides, instead of finding the slope in
// memory beside the value.
//
// `group_of` is by node, -1 for none; a group's nodes are in order. `source` is by value as in FusionGroups.
void MoveToReaders(const Graph& graph, absl::Span<const ValueId> source, std::vector<int32_t>* group_of,
                   std::vector<FusionGroup>* groups);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_FUSION_LATE_NODES_H_
