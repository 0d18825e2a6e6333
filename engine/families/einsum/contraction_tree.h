#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_TREE_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_TREE_H_

#include <array>
#include <vector>

#include "engine/families/einsum/contraction_network.h"
#include "engine/families/einsum/path_cost.h"

namespace tensord {

// A path as a binary tree that searches change in place: leaves are the operands 0 … n - 1, the inner nodes the steps
// n … 2n - 2, in no order. Every node knows the labels of its tensor and every inner one its cost. Borrows the network.
// Thread-compatible.
class ContractionTree {
 public:
  ContractionTree(const ContractionNetwork& network, absl::Span<const std::pair<int, int>> path,
                  const PathObjective& objective);

  const ContractionNetwork& network() const { return *network_; }
  const PathObjective& objective() const { return objective_; }
  int num_leaves() const { return network_->num_operands(); }
  int num_nodes() const { return static_cast<int>(children_.size()); }
  int root() const { return root_; }
  bool is_leaf(int node) const { return node < num_leaves(); }
  int child(int node, int side) const { return children_[static_cast<size_t>(node)][static_cast<size_t>(side)]; }
  LabelSet labels(int node) const {
    return LabelSet(labels_).subspan(static_cast<size_t>(node) * network_->num_words(), network_->num_words());
  }
  double cost(int node) const { return costs_[static_cast<size_t>(node)]; }
  double TotalCost() const;

  // Gives an inner node other children. The labels of `node` itself stay: the set of tensors below it stays the same.
  void SetChildren(int node, int left, int right);
  // Gives an inner node the labels that its children have and `needed_labels` asks for: any of these sets.
  void SetLabels(int node, LabelSet labels);
  // The cost of the node's step, from the labels of its children and its own.
  void UpdateCost(int node);
  void SetCost(int node, double cost) { costs_[static_cast<size_t>(node)] = cost; }  // known already

  // Returns the cost of a step that contracts tensors of labels a and b to `result`.
  double StepCost(LabelSet a, LabelSet b, LabelSet result, bool is_last) const;

  // Inner nodes, children before parents.
  std::vector<int> PostOrder() const;
  ContractionPath ToPath() const;

 private:
  const ContractionNetwork* network_;
  PathObjective objective_;
  int root_ = 0;
  std::vector<std::array<int, 2>> children_;  // -1 for leaves
  std::vector<uint64_t> labels_;
  std::vector<double> costs_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_CONTRACTION_TREE_H_
