#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_SUBTREE_SEARCH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_SUBTREE_SEARCH_H_

#include "engine/families/einsum/contraction_tree.h"
#include "engine/families/einsum/search_work.h"

namespace tensord {

// Replaces subtrees of up to `leaves` tensors by the cheapest ones until none gets cheaper, or until `work` or `budget`
// is used up, of which a search of a subtree of n tensors takes 3^n. Steps that cost next to nothing beside the whole
// are left alone. (Subtree reconfiguration: Gray and Kourtis, Quantum 5, 410, 2021.)
void ImproveSubtrees(int leaves, int64_t budget, SearchWork* work, ContractionTree* tree);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_SUBTREE_SEARCH_H_
