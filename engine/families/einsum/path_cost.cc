#include "engine/families/einsum/path_cost.h"

#include <algorithm>

#include "engine/families/einsum/contraction_tree.h"

namespace tensord {

PathCost CostOf(const ContractionNetwork& network, absl::Span<const std::pair<int, int>> path) {
  const ContractionTree tree(network, path, PathObjective{.element_weight = 0});
  PathCost cost;
  for (int node = network.num_operands(); node < tree.num_nodes(); ++node) {
    cost.flops += tree.cost(node);
    if (node != tree.root()) cost.largest = std::max(cost.largest, network.Size(tree.labels(node)));
  }
  return cost;
}

}  // namespace tensord
