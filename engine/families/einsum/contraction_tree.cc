#include "engine/families/einsum/contraction_tree.h"

#include <algorithm>

namespace tensord {

ContractionTree::ContractionTree(const ContractionNetwork& network, absl::Span<const std::pair<int, int>> path,
                                 const PathObjective& objective)
    : network_(&network), objective_(objective) {
  const size_t n = static_cast<size_t>(network.num_operands()), nodes = n + path.size(), words = network.num_words();
  children_.assign(nodes, {-1, -1});
  labels_.assign(nodes * words, 0);
  costs_.assign(nodes, 0);
  root_ = static_cast<int>(nodes) - 1;
  for (size_t i = 0; i < n; ++i) {
    std::copy(network.operand(static_cast<int>(i)).begin(), network.operand(static_cast<int>(i)).end(),
              labels_.begin() + static_cast<std::ptrdiff_t>(i * words));
  }
  // Holders of each label among the tensors that are left, the output being one.
  std::vector<int> holders(words * 64);
  const auto count = [&](LabelSet set) { ForEachLabel(set, [&](size_t label) { ++holders[label]; }); };
  for (size_t i = 0; i < n; ++i) count(labels(static_cast<int>(i)));
  count(network.output());
  std::vector<uint64_t> result(words);
  for (size_t s = 0; s < path.size(); ++s) {
    const int node = static_cast<int>(n + s);
    const auto [a, b] = path[s];
    children_[n + s] = {a, b};
    for (int child : {a, b}) ForEachLabel(labels(child), [&](size_t label) { --holders[label]; });
    for (size_t w = 0; w < words; ++w) result[w] = labels(a)[w] | labels(b)[w];
    ForEachLabel(result, [&](size_t label) {
      if (holders[label] == 0) {
        result[label / 64] &= ~(uint64_t{1} << (label % 64));
      } else {
        ++holders[label];
      }
    });
    SetLabels(node, result);
    UpdateCost(node);
  }
}

double ContractionTree::TotalCost() const {
  double total = 0;
  for (double cost : costs_) total += cost;
  return total;
}

void ContractionTree::SetChildren(int node, int left, int right) {
  children_[static_cast<size_t>(node)] = {left, right};
}

void ContractionTree::SetLabels(int node, LabelSet labels) {
  std::copy(labels.begin(), labels.end(),
            labels_.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(node) * network_->num_words()));
}

void ContractionTree::UpdateCost(int node) {
  costs_[static_cast<size_t>(node)] =
      StepCost(labels(child(node, 0)), labels(child(node, 1)), labels(node), node == root_);
}

double ContractionTree::StepCost(LabelSet a, LabelSet b, LabelSet result, bool is_last) const {
  double summed = 1, kept = 1;
  bool sums = false;
  for (size_t w = 0; w < a.size(); ++w) {
    for (uint64_t bits = result[w]; bits != 0; bits &= bits - 1) {
      kept *= network_->size_of(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
    }
    const uint64_t gone = (a[w] | b[w]) & ~result[w];
    sums = sums || gone != 0;
    for (uint64_t bits = gone; bits != 0; bits &= bits - 1) {
      summed *= network_->size_of(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
    }
  }
  return objective_.StepCost(kept * summed, kept, sums, is_last);
}

std::vector<int> ContractionTree::PostOrder() const {
  std::vector<int> order;
  if (is_leaf(root_)) return order;
  std::vector<int> open = {root_};
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    order.push_back(node);
    for (int side : {0, 1}) {
      if (!is_leaf(child(node, side))) open.push_back(child(node, side));
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

ContractionPath ContractionTree::ToPath() const {
  ContractionPath path;
  std::vector<int> id(children_.size());
  for (int i = 0; i < num_leaves(); ++i) id[static_cast<size_t>(i)] = i;
  for (int node : PostOrder()) {
    id[static_cast<size_t>(node)] = num_leaves() + static_cast<int>(path.size());
    path.push_back({id[static_cast<size_t>(child(node, 0))], id[static_cast<size_t>(child(node, 1))]});
  }
  return path;
}

}  // namespace tensord
