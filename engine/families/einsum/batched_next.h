#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_

#include <vector>

#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// By step of the path: the labels of its result that are batch where that is read, which are those that the other
// operand there has and that still others need. Ascending; empty for the last step.
std::vector<std::vector<int>> LabelsBatchedNext(const ContractionNetwork& network, const ContractionPath& path);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_
