#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_ELIMINATION_PATH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_ELIMINATION_PATH_H_

#include <cstdint>
#include <optional>

#include "engine/families/einsum/contraction_network.h"
#include "engine/families/einsum/search_work.h"

namespace tensord {

struct EliminationChoice {
  bool by_fill = false;  // the label whose neighbours miss the fewest pairs of each other; else of the smallest clique
  double noise = 0;      // of the scores, as a part of them
  uint64_t seed = 0;
};

// Sums label after label: all tensors with the label become one, the small ones first. The order is that of the
// min-fill or min-weight heuristics of variable elimination (Koller and Friedman, "Probabilistic Graphical Models",
// 2009, §9.4). If labels stand in many tensors, as in probabilistic models, this finds paths that searches by pairs
// miss. Returns nothing if the work is used up before it ends: if labels get very many neighbours.
std::optional<ContractionPath> EliminationPath(const ContractionNetwork& network, const EliminationChoice& choice,
                                               SearchWork* work);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_ELIMINATION_PATH_H_
