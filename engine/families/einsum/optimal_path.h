#ifndef TENSORD_ENGINE_FAMILIES_EINSUM_OPTIMAL_PATH_H_
#define TENSORD_ENGINE_FAMILIES_EINSUM_OPTIMAL_PATH_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "engine/families/einsum/contraction_network.h"
#include "engine/families/einsum/path_cost.h"

namespace tensord {

// The cheapest way to contract a few tensors, by dynamic programming over their subsets: 3^n / 2 steps, most of which
// are cut short. Holds its tables for the next search. Borrows the network; confined to one thread.
class OptimalSearch {
 public:
  static constexpr int kMaxTensors = 16;  // 21 million steps at most, and 65,536 subsets in tables

  OptimalSearch(const ContractionNetwork& network, const PathObjective& objective)
      : network_(network), objective_(objective) {}

  // Tells whether the tensors, 2 to kMaxTensors, can be contracted to a tensor of labels `result` at less than `below`;
  // path() and cost() then return the path and its cost. `is_last`: the result is the network's.
  bool Search(absl::Span<const LabelSet> tensors, LabelSet result, bool is_last,
              double below = std::numeric_limits<double>::infinity());

  const ContractionPath& path() const { return path_; }
  double cost() const { return best_.back().cost; }
  // Returns the steps of the last search.
  int64_t steps() const { return steps_; }

 private:
  struct Subset {
    double cost = 0;  // of contracting it
    uint32_t left = 0;
  };

  // Labels that the same tensors have are one: a network of few tensors has few of those.
  void GroupLabels(absl::Span<const LabelSet> tensors, LabelSet result);
  double StepCost(uint32_t a, uint32_t b, bool is_last);
  int Emit(uint32_t subset, absl::Span<int> made);

  const ContractionNetwork& network_;
  const PathObjective objective_;
  std::vector<uint32_t> holders_;    // by label: the tensors that have it, and a bit above theirs where it is kept
  std::vector<size_t> seen_labels_;  // with holders
  std::vector<uint32_t> group_holders_;
  std::vector<double> group_sizes_;
  size_t words_ = 0;            // of a set of groups
  std::vector<uint64_t> kept_;  // by subset: groups of what it is contracted to
  std::vector<double> sizes_;   // by subset
  std::vector<Subset> best_;    // by subset
  ContractionPath path_;
  int64_t steps_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_EINSUM_OPTIMAL_PATH_H_
