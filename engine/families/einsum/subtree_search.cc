#include "engine/families/einsum/subtree_search.h"

#include <algorithm>
#include <vector>

#include "engine/families/einsum/optimal_path.h"

namespace tensord {
namespace {

// A subtree cut off below some steps: its tensors, and the steps that contract them.
struct Subtree {
  std::vector<int> tensors;
  std::vector<int> steps;  // the first is its root
  double cost = 0;
};

// Grown from the root by opening the step that costs most.
void Grow(const ContractionTree& tree, int root, size_t leaves, Subtree* subtree) {
  subtree->tensors.assign({root});
  subtree->steps.clear();
  subtree->cost = 0;
  while (subtree->tensors.size() < leaves) {
    auto next = subtree->tensors.end();
    for (auto it = subtree->tensors.begin(); it != subtree->tensors.end(); ++it) {
      if (!tree.is_leaf(*it) && (next == subtree->tensors.end() || tree.cost(*it) > tree.cost(*next))) next = it;
    }
    if (next == subtree->tensors.end()) return;
    const int step = *next;
    subtree->steps.push_back(step);
    subtree->cost += tree.cost(step);
    *next = tree.child(step, 0);
    subtree->tensors.push_back(tree.child(step, 1));
  }
}

// Gives the steps of the subtree the shape of the path; its root stays the same.
void Rebuild(const Subtree& subtree, const ContractionPath& path, ContractionTree* tree) {
  std::vector<int> nodes = subtree.tensors;
  const std::vector<uint64_t> whole(tree->labels(subtree.steps[0]).begin(), tree->labels(subtree.steps[0]).end());
  for (size_t s = 0; s < path.size(); ++s) {
    const bool is_root = s + 1 == path.size();
    const int node = is_root ? subtree.steps[0] : subtree.steps[s + 1];
    tree->SetChildren(node, nodes[static_cast<size_t>(path[s].first)], nodes[static_cast<size_t>(path[s].second)]);
    nodes.push_back(node);
  }
  // Labels: those below a step that are needed outside it, going up. Needed are the labels of tensors that the step
  // does not have, and those of the whole.
  const size_t n = subtree.tensors.size(), words = whole.size();
  std::vector<std::vector<bool>> below(path.size(), std::vector<bool>(n));
  std::vector<uint64_t> labels(words), outside(words);
  for (size_t s = 0; s < path.size(); ++s) {
    for (int child : {path[s].first, path[s].second}) {
      const size_t c = static_cast<size_t>(child);
      for (size_t i = 0; i < n; ++i) {
        if (c < n ? c == i : below[c - n][i]) below[s][i] = true;
      }
    }
    std::fill(labels.begin(), labels.end(), 0);
    outside = whole;
    for (size_t i = 0; i < n; ++i) {
      std::vector<uint64_t>& set = below[s][i] ? labels : outside;
      const LabelSet tensor = tree->labels(subtree.tensors[i]);
      for (size_t w = 0; w < words; ++w) set[w] |= tensor[w];
    }
    for (size_t w = 0; w < words; ++w) labels[w] &= outside[w];
    const int node = nodes[n + s];
    if (s + 1 < path.size()) tree->SetLabels(node, labels);
    tree->UpdateCost(node);
  }
}

}  // namespace

void ImproveSubtrees(int leaves, int64_t budget, SearchWork* work, ContractionTree* tree) {
  leaves = std::min(leaves, OptimalSearch::kMaxTensors);
  OptimalSearch search(tree->network(), tree->objective());
  Subtree subtree;
  std::vector<LabelSet> tensors;
  // By root: the last subtree searched and found to be the best.
  std::vector<std::vector<int>> done(static_cast<size_t>(tree->num_nodes()));
  for (bool changed = true; changed && budget > 0;) {
    changed = false;
    std::vector<int> order = tree->PostOrder();
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tree->cost(a) > tree->cost(b); });
    const double negligible = tree->TotalCost() * 1e-4 / static_cast<double>(tree->num_nodes());
    for (int root : order) {
      if (work->is_used_up()) return;
      Grow(*tree, root, static_cast<size_t>(leaves), &subtree);
      work->Add(static_cast<int64_t>(leaves) * leaves);
      if (subtree.tensors.size() < 3 || subtree.cost <= negligible) continue;
      std::vector<int> key = subtree.tensors;
      std::sort(key.begin(), key.end());
      if (done[static_cast<size_t>(root)] == key) continue;
      tensors.clear();
      int64_t steps = 1;
      for (int tensor : subtree.tensors) {
        tensors.push_back(tree->labels(tensor));
        steps *= 3;
      }
      budget -= steps;
      if (budget <= 0) return;
      const bool is_better =
          search.Search(tensors, tree->labels(root), root == tree->root(), subtree.cost * (1 - 1e-9));
      work->Add(search.steps());
      if (is_better) {
        Rebuild(subtree, search.path(), tree);
        changed = true;
      } else {
        done[static_cast<size_t>(root)] = std::move(key);
      }
    }
  }
}

}  // namespace tensord
