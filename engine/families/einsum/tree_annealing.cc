#include "engine/families/einsum/tree_annealing.h"

#include <cmath>
#include <vector>

#include "engine/base/stop_signal.h"
#include "engine/families/einsum/step_random.h"

namespace tensord {
namespace {

// Random numbers, a logarithm and an exponential.
constexpr int64_t kStepsOfVisit = 40;

}  // namespace

int64_t StepsOfSweep(const ContractionTree& tree) {
  int64_t steps = 0;
  for (int node = tree.num_leaves(); node < tree.num_nodes(); ++node) {
    steps += kStepsOfVisit + 2 * static_cast<int64_t>(tree.network().num_words());
    // Two costs are asked for, of all labels that stand below.
    for (const int side : {0, 1}) {
      for (const uint64_t word : tree.labels(tree.child(node, side))) steps += 2 * std::popcount(word);
    }
  }
  return steps;
}

void Anneal(const AnnealingSchedule& schedule, uint64_t seed, ContractionTree* tree) {
  StepRandom random(seed);
  const size_t words = tree->network().num_words();
  std::vector<uint64_t> labels(words);
  std::vector<int> inner;
  const double growth =
      schedule.sweeps > 1 ? std::pow(schedule.last_beta / schedule.first_beta, 1.0 / (schedule.sweeps - 1)) : 1;
  double beta = schedule.first_beta;
  for (int sweep = 0; sweep < schedule.sweeps && !StopRequested(); ++sweep, beta *= growth) {
    inner = tree->PostOrder();
    for (int node : inner) {
      const uint64_t bits = random.Bits();
      int side = static_cast<int>(bits & 1);
      if (tree->is_leaf(tree->child(node, side))) side = 1 - side;
      const int below = tree->child(node, side), c = tree->child(node, 1 - side);
      if (tree->is_leaf(below)) continue;
      const int moved_side = static_cast<int>((bits >> 1) & 1);
      const int stays = tree->child(below, 1 - moved_side), moved = tree->child(below, moved_side);
      // (stays, moved), c becomes (stays, c), moved.
      const LabelSet x = tree->labels(stays), y = tree->labels(c), z = tree->labels(moved), whole = tree->labels(node);
      for (size_t w = 0; w < words; ++w) labels[w] = (x[w] | y[w]) & (z[w] | whole[w]);
      const double old_cost = tree->cost(node) + tree->cost(below);
      // Costs up to here pass, by the acceptance rule of Metropolis on the logarithm of costs.
      const double most = old_cost * std::exp(-std::log(random.Uniform()) / beta);
      const double below_cost = tree->StepCost(x, y, labels, false);
      if (below_cost > most) continue;
      const double node_cost = tree->StepCost(labels, z, whole, node == tree->root());
      if (below_cost + node_cost > most) continue;
      tree->SetChildren(below, stays, c);
      tree->SetLabels(below, labels);
      tree->SetChildren(node, below, moved);
      tree->SetCost(below, below_cost);
      tree->SetCost(node, node_cost);
    }
  }
}

}  // namespace tensord
