#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_TREE_ANNEALING_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_TREE_ANNEALING_H_

#include <cstdint>

#include "engine/families/einsum/contraction_tree.h"

namespace tensord {

struct AnnealingSchedule {
  double first_beta = 0.1, last_beta = 12;  // inverse temperatures of the logarithm of a step's cost
  int sweeps = 20;                          // visits of every step
};

// Returns the work of a sweep, in steps.
int64_t StepsOfSweep(const ContractionTree& tree);

// Changes a tree by simulated annealing with rotations, ((a,b),c) to ((a,c),b): Kalachev, Panteleev, Yung,
// "Multi-tensor contraction for XEB verification of quantum circuits" (2021), known as TreeSA. The same for the same
// seed.
void Anneal(const AnnealingSchedule& schedule, uint64_t seed, ContractionTree* tree);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_TREE_ANNEALING_H_
