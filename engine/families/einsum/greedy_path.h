#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_GREEDY_PATH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_GREEDY_PATH_H_

#include <cstdint>

#include "engine/families/einsum/contraction_network.h"
#include "engine/families/einsum/path_cost.h"
#include "engine/families/einsum/search_work.h"

namespace tensord {

struct GreedyChoice {
  double alpha = 1;        // what the two tensors that go away are worth beside the one that comes
  double temperature = 0;  // of the noise on scores; 0: none
  uint64_t seed = 0;       // of the noise
};

// Contracts, step by step, the pair with a label in common for which size(result) - alpha · (size(a) + size(b)) is
// least, as opt_einsum's greedy search does (Smith and Gray, JOSS 3(26), 2018). Tensors without a common label come
// last, the smallest first. With noise it is the random-greedy search of Gray and Kourtis, Quantum 5, 410 (2021).
// Results past the objective's bound come after all others. It ends, whatever `work` says.
ContractionPath GreedyPath(const ContractionNetwork& network, const PathObjective& objective,
                           const GreedyChoice& choice, SearchWork* work);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_GREEDY_PATH_H_
