#include "engine/families/einsum/batched_next.h"

#include "engine/families/einsum/contraction_tree.h"
#include "engine/families/einsum/path_cost.h"

namespace tensord {

std::vector<std::vector<int>> LabelsBatchedNext(const ContractionNetwork& network, const ContractionPath& path) {
  const ContractionTree tree(network, path, PathObjective());
  std::vector<std::vector<int>> batched(path.size());
  std::vector<uint64_t> in_all(network.num_words());
  for (size_t step = 0; step < path.size(); ++step) {
    const auto [a, b] = path[step];
    const LabelSet made = tree.labels(network.num_operands() + static_cast<int>(step));
    for (size_t w = 0; w < in_all.size(); ++w) in_all[w] = tree.labels(a)[w] & tree.labels(b)[w] & made[w];
    for (const int tensor : {a, b}) {
      if (tensor < network.num_operands()) continue;
      std::vector<int>& labels = batched[static_cast<size_t>(tensor - network.num_operands())];
      ForEachLabel(in_all, [&](size_t label) { labels.push_back(static_cast<int>(label)); });
    }
  }
  return batched;
}

}  // namespace tensord
