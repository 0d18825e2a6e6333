#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_

#include <vector>

#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// Returns, for each step of the path, the batch labels of the step that reads its result. A label of the result is
// batch there if the other operand of the reading step has it and its result keeps it. Ascending; empty for the last
// step.
std::vector<std::vector<int>> LabelsBatchedNext(const ContractionNetwork& network, const ContractionPath& path);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_BATCHED_NEXT_H_
