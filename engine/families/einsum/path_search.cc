#include "engine/families/einsum/path_search.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/families/einsum/contraction_tree.h"
#include "engine/families/einsum/elimination_path.h"
#include "engine/families/einsum/greedy_path.h"
#include "engine/families/einsum/optimal_path.h"
#include "engine/families/einsum/path_cost.h"
#include "engine/families/einsum/search_work.h"
#include "engine/families/einsum/subtree_search.h"
#include "engine/families/einsum/tree_annealing.h"

namespace tensord {
namespace {

// Up to here kAuto takes the best path of all.
constexpr int kFewOperands = 10;
// The bound without one of the client: half a gigabyte of F64, or the sizes of the operands and the result themselves.
constexpr double kUsualBound = 1 << 28;
// Budgets of the searches, in steps; each is repeated as often as its budget allows in a network of few operands a
// label.
constexpr double kGreedyBudget = 4e5;
constexpr double kEliminationBudget = 4e6;
constexpr double kAnnealingBudget = 1.6e7;
// Annealing takes no more steps than a run has operations by this number: a plan is run often, but need not cost more
// than many runs.
constexpr double kOperationsOfStep = 50;
constexpr int kSweepsOfRun = 800, kMaxRuns = 16;
constexpr int64_t kSubtreeBudget = 20'000'000;
// The most work of the searches, in steps of SearchWork. Networks like the above need less; if hundreds of operands
// share a label, or tensors have very many labels, a search takes a hundred times as long.
constexpr int64_t kGreedyWork = 30'000'000, kRandomGreedyWork = 60'000'000;
constexpr int64_t kEliminationWork = 40'000'000;
constexpr int64_t kAnnealingWork = 200'000'000;
constexpr int64_t kSubtreeWork = 300'000'000;
constexpr int kSubtreeLeaves = 8;

ContractionPath LeftToRight(int operands) {
  ContractionPath path;
  for (int i = 1; i < operands; ++i) path.push_back({i == 1 ? 0 : operands + i - 2, i});
  return path;
}

PathObjective ObjectiveOf(const ContractionNetwork& network, std::optional<int64_t> largest_intermediate) {
  PathObjective objective;
  if (largest_intermediate.has_value()) {
    objective.bound = static_cast<double>(std::max<int64_t>(1, *largest_intermediate));
    return objective;
  }
  objective.bound = std::max(kUsualBound, 2 * network.Size(network.output()));
  for (int i = 0; i < network.num_operands(); ++i) {
    objective.bound = std::max(objective.bound, 2 * network.Size(network.operand(i)));
  }
  return objective;
}

// The best of the trees that a search made.
class BestTree {
 public:
  BestTree(const ContractionNetwork& network, const PathObjective& objective)
      : network_(network),
        objective_(objective),
        tree_(network, LeftToRight(network.num_operands()), objective),
        cost_(tree_.TotalCost()) {}

  void Offer(const ContractionPath& path) { Offer(ContractionTree(network_, path, objective_)); }
  void Offer(ContractionTree tree) {
    const double cost = tree.TotalCost();
    if (!(cost < cost_)) return;
    cost_ = cost;
    tree_ = std::move(tree);
  }

  const ContractionTree& tree() const { return tree_; }
  double cost() const { return cost_; }

 private:
  const ContractionNetwork& network_;
  const PathObjective objective_;
  ContractionTree tree_;
  double cost_;
};

// How often something fits into a budget that takes `cost` a time.
int Times(double budget, double cost, int most) {
  return static_cast<int>(std::clamp(budget / cost, 1.0, static_cast<double>(most)));
}

// Returns the steps of a greedy search.
double GreedySteps(const ContractionNetwork& network) {
  return network.num_operands() * (20 + static_cast<double>(network.num_words()));
}

// Each of these returns its work.
int64_t OfferGreedy(const ContractionNetwork& network, const PathObjective& objective, BestTree* best) {
  constexpr double kAlphas[] = {1.0, 0.0, 0.5, 2.0, 10.0};
  const int trials = std::max(3, Times(kGreedyBudget, GreedySteps(network), 5));
  SearchWork work(kGreedyWork);
  for (int i = 0; i < trials && !work.is_used_up(); ++i) {
    best->Offer(GreedyPath(network, objective, {.alpha = kAlphas[i]}, &work));
  }
  return work.done();
}

int64_t OfferRandomGreedy(const ContractionNetwork& network, const PathObjective& objective, BestTree* best) {
  constexpr double kTemperatures[] = {0.1, 0.3, 1.0}, kAlphas[] = {1.0, 0.5, 0.1};
  const int trials = std::min(48, static_cast<int>(kGreedyBudget / GreedySteps(network)));
  SearchWork work(kRandomGreedyWork);
  for (int i = 0; i < trials && !work.is_used_up(); ++i) {
    best->Offer(GreedyPath(
        network, objective,
        {.alpha = kAlphas[i / 3 % 3], .temperature = kTemperatures[i % 3], .seed = static_cast<uint64_t>(i)}, &work));
  }
  return work.done();
}

int64_t OfferElimination(const ContractionNetwork& network, BestTree* best) {
  const double labels = static_cast<double>(network.num_words()) * 64, trial = 4 * labels * labels;
  if (trial > kEliminationBudget) return 0;
  const int trials = Times(kEliminationBudget, trial, 32);
  SearchWork work(kEliminationWork);
  for (int i = 0; i < trials; ++i) {
    const std::optional<ContractionPath> path = EliminationPath(
        network, {.by_fill = i % 2 == 0, .noise = i < 2 ? 0 : 0.2, .seed = static_cast<uint64_t>(i)}, &work);
    if (!path.has_value()) break;
    best->Offer(*path);
  }
  return work.done();
}

// Annealing from the best tree, from several temperatures; each result goes through the search of its subtrees.
int64_t OfferAnnealed(const ContractionNetwork& network, BestTree* best) {
  constexpr double kFirstBetas[] = {1, 0.5, 2};
  const double sweep = network.num_operands() * (4 + static_cast<double>(network.num_words()));
  const double budget_for_all = std::min(kAnnealingBudget, best->cost() / kOperationsOfStep);
  const int64_t steps_of_sweep = StepsOfSweep(best->tree());
  const int most_sweeps = Times(kAnnealingWork, static_cast<double>(steps_of_sweep), kMaxRuns * kSweepsOfRun);
  const int sweeps = Times(budget_for_all, sweep, most_sweeps);
  const int runs = std::max(1, sweeps / kSweepsOfRun);
  int64_t done = sweeps / runs * runs * steps_of_sweep;
  const auto improve = [&](ContractionTree tree) {
    SearchWork work(kSubtreeWork / (runs + 1));
    ImproveSubtrees(kSubtreeLeaves, kSubtreeBudget / (runs + 1), &work, &tree);
    done += work.done();
    best->Offer(std::move(tree));
  };
  improve(best->tree());
  for (int run = 0; run < runs; ++run) {
    ContractionTree tree = best->tree();
    Anneal({.first_beta = kFirstBetas[run % 3], .last_beta = 30, .sweeps = sweeps / runs}, static_cast<uint64_t>(run),
           &tree);
    improve(std::move(tree));
  }
  return done;
}

std::optional<ContractionPath> OptimalPath(const ContractionNetwork& network, const PathObjective& objective) {
  std::vector<LabelSet> operands;
  for (int i = 0; i < network.num_operands(); ++i) operands.push_back(network.operand(i));
  OptimalSearch search(network, objective);
  if (!search.Search(operands, network.output(), /*is_last=*/true)) return std::nullopt;
  return search.path();
}

ContractionPath SearchUnbounded(const ContractionNetwork& network, PathOptimizer optimizer,
                                const PathObjective& objective, int64_t* steps) {
  const int operands = network.num_operands();
  if (operands < 3 || optimizer == PathOptimizer::kLeftToRight) return LeftToRight(operands);
  if (optimizer == PathOptimizer::kOptimal || (optimizer == PathOptimizer::kAuto && operands <= kFewOperands)) {
    // Finds nothing if every path costs more than a double can hold.
    if (std::optional<ContractionPath> path = OptimalPath(network, objective)) return *std::move(path);
  }
  BestTree best(network, objective);
  *steps += OfferGreedy(network, objective, &best);
  if (optimizer == PathOptimizer::kAuto) {
    *steps += OfferElimination(network, &best);
    *steps += OfferRandomGreedy(network, objective, &best);
    *steps += OfferAnnealed(network, &best);
  }
  return best.tree().ToPath();
}

}  // namespace

absl::Status CheckLargestIntermediate(const ContractionNetwork& network, const ContractionPath& path,
                                      int64_t largest_intermediate) {
  const double largest = CostOf(network, path).largest;
  if (largest <= static_cast<double>(largest_intermediate)) return absl::OkStatus();
  const int64_t elements = largest < 0x1p63 ? static_cast<int64_t>(largest) : std::numeric_limits<int64_t>::max();
  return RefuseLimit("largest_intermediate", largest_intermediate, elements,
                     "elements of the largest intermediate of the best path found");
}

absl::StatusOr<ContractionPath> SearchPath(const ContractionNetwork& network, PathOptimizer optimizer,
                                           std::optional<int64_t> largest_intermediate, int64_t* steps) {
  if (optimizer == PathOptimizer::kOptimal && network.num_operands() > OptimalSearch::kMaxTensors) {
    return RefuseLimit("einsum_optimal_operands", OptimalSearch::kMaxTensors, network.num_operands(),
                       "operands of an einsum with OPTIMIZER_OPTIMAL; OPTIMIZER_AUTO takes more");
  }
  int64_t done = 0;
  ContractionPath path = SearchUnbounded(network, optimizer, ObjectiveOf(network, largest_intermediate), &done);
  // A search that was broken off may look like a path.
  RETURN_IF_ERROR(CheckStopped());
  if (steps != nullptr) *steps = done;
  if (largest_intermediate.has_value()) {
    RETURN_IF_ERROR(CheckLargestIntermediate(network, path, *largest_intermediate));
  }
  return path;
}

}  // namespace tensord
