#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_PATH_COST_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_PATH_COST_H_

#include <limits>

#include "engine/families/einsum/contraction_network.h"

namespace tensord {

// The cost of a path that is run step by step.
struct PathCost {
  double flops = 0;    // a product that is summed counts two, another one
  double largest = 0;  // elements of the largest intermediate; the result is none
};
PathCost CostOf(const ContractionNetwork& network, absl::Span<const std::pair<int, int>> path);

// The cost that searches minimise: operations, and the elements that are written and read again on the way. An
// intermediate past the bound costs more the further it is past it, so that a search finds its way below.
struct PathObjective {
  double element_weight = 4;  // operations that take as long as moving one element
  double bound = std::numeric_limits<double>::infinity();

  // Returns the cost of one step, given the elements that it visits, those of its result, and whether it sums.
  double StepCost(double visited, double result, bool sums, bool is_last) const {
    const double cost = (sums ? 2 * visited : visited) + element_weight * result;
    if (result <= bound || is_last) return cost;
    const double excess = result / bound;
    return cost * (1 + excess * excess) * 16;
  }
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_PATH_COST_H_
