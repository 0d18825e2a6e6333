#include "engine/families/einsum/step_order.h"

#include <algorithm>
#include <random>
#include <vector>

#include "engine/families/einsum/contraction_tree.h"
#include "engine/families/einsum/path_cost.h"
#include "engine/families/einsum/path_search.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

// Elements that are alive at once at most, of operands that are used up and all else.
double Peak(const ContractionNetwork& network, const ContractionPath& path) {
  const ContractionTree tree(network, path, PathObjective());
  const auto size = [&](int tensor) { return network.Size(tree.labels(tensor)); };
  double alive = 0, peak = 0;
  for (size_t step = 0; step < path.size(); ++step) {
    alive += size(network.num_operands() + static_cast<int>(step));
    peak = std::max(peak, alive);
    for (const int tensor : {path[step].first, path[step].second}) {
      if (tensor >= network.num_operands()) alive -= size(tensor);
    }
  }
  return peak;
}

// Both operands of the last step grow from two products each: [0 1] [1 2], then [a 3] [b 3].
TEST(StepOrderTest, GrowthWaitsForTheStepThatReadsIt) {
  const std::vector<std::vector<int>> operands = {{0, 1, 9}, {1, 2}, {3}, {0, 1, 9}, {1, 2}, {3}};
  const std::vector<int64_t> sizes(10, 4);
  const std::vector<int> output = {0, 9};
  const ContractionNetwork network(operands, output, sizes);
  const ContractionPath path = {{0, 1}, {6, 2}, {3, 4}, {8, 5}, {7, 9}};
  const ContractionPath wanted = {{0, 1}, {3, 4}, {6, 2}, {7, 5}, {8, 9}};
  EXPECT_EQ(WithLateGrowth(network, path), wanted);
  EXPECT_EQ(WithLateGrowth(network, wanted), wanted);
}

TEST(StepOrderTest, ContractsTheSameAndNeedsNoMoreMemory) {
  std::mt19937_64 random(3);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int changed = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int labels = 4 + below(12), count = 1 + below(24);
    std::vector<std::vector<int>> operands;
    for (int i = 0; i < count; ++i) {
      std::vector<int> term;
      for (int label = 0; label < labels; ++label) {
        if (below(4) == 0) term.push_back(label);
      }
      operands.push_back(term);
    }
    std::vector<int64_t> sizes;
    for (int label = 0; label < labels; ++label) sizes.push_back(1 + below(5));
    const std::vector<int> output = {0};
    const ContractionNetwork network(operands, output, sizes);
    const auto path = SearchPath(network, PathOptimizer::kGreedy, std::nullopt);
    ASSERT_TRUE(path.ok());
    const ContractionPath ordered = WithLateGrowth(network, *path);
    ASSERT_EQ(ordered.size(), path->size());
    EXPECT_EQ(CostOf(network, ordered).flops, CostOf(network, *path).flops);
    EXPECT_EQ(CostOf(network, ordered).largest, CostOf(network, *path).largest);
    EXPECT_LE(Peak(network, ordered), Peak(network, *path)) << trial;
    if (ordered != *path) ++changed;
  }
  EXPECT_GT(changed, 30);
}

// Each step's result is larger than its operands.
TEST(StepOrderTest, ChainsOfGrowthMayBeDeep) {
  constexpr int kOperands = 4000;
  std::vector<std::vector<int>> operands;
  std::vector<int64_t> sizes;
  std::vector<int> output;
  ContractionPath path;
  for (int i = 0; i < kOperands; ++i) {
    operands.push_back({i});
    sizes.push_back(i < 20 ? 3 : 1);
    output.push_back(i);
    if (i > 0) path.emplace_back(i == 1 ? 0 : kOperands + i - 2, i);
  }
  const ContractionNetwork network(operands, output, sizes);
  EXPECT_EQ(WithLateGrowth(network, path), path);
}

}  // namespace
}  // namespace tensord
