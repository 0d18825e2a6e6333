#include "engine/families/einsum/path_search.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "engine/families/einsum/path_cost.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

struct Terms {
  std::vector<std::vector<int>> operands;
  std::vector<int> output;
  std::vector<int64_t> sizes;

  ContractionNetwork Network() const { return ContractionNetwork(operands, output, sizes); }
};

// Matrices that are to be multiplied, in a random order.
Terms Chain(int matrices, std::mt19937_64* random) {
  Terms terms;
  for (int i = 0; i < matrices; ++i) terms.operands.push_back({i, i + 1});
  for (int i = 0; i <= matrices; ++i) terms.sizes.push_back(std::uniform_int_distribution<int64_t>(2, 500)(*random));
  terms.output = {0, matrices};
  std::shuffle(terms.operands.begin(), terms.operands.end(), *random);
  return terms;
}

Terms RandomTerms(int operands, int labels, int rank, std::mt19937_64* random) {
  Terms terms;
  const auto label = [&] { return std::uniform_int_distribution<int>(0, labels - 1)(*random); };
  for (int i = 0; i < operands; ++i) {
    terms.operands.emplace_back();
    for (int k = 0; k < rank; ++k) terms.operands.back().push_back(label());
  }
  for (int i = 0; i < labels; ++i) terms.sizes.push_back(std::uniform_int_distribution<int64_t>(1, 6)(*random));
  terms.output = {terms.operands[0][0]};
  return terms;
}

void ExpectIsPath(const ContractionPath& path, int operands) {
  ASSERT_EQ(path.size(), static_cast<size_t>(operands - 1));
  std::vector<bool> used(static_cast<size_t>(2 * operands - 1));
  for (size_t step = 0; step < path.size(); ++step) {
    for (int id : {path[step].first, path[step].second}) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, operands + static_cast<int>(step));
      EXPECT_FALSE(used[static_cast<size_t>(id)]);
      used[static_cast<size_t>(id)] = true;
    }
  }
}

// The least cost of all paths, by trying all.
double LeastFlops(const ContractionNetwork& network) {
  double least = std::numeric_limits<double>::infinity();
  ContractionPath path;
  std::vector<int> live;
  for (int i = 0; i < network.num_operands(); ++i) live.push_back(i);
  const std::function<void()> visit = [&] {
    if (live.size() == 1) {
      least = std::min(least, CostOf(network, path).flops);
      return;
    }
    for (size_t a = 0; a < live.size(); ++a) {
      for (size_t b = a + 1; b < live.size(); ++b) {
        const std::vector<int> before = live;
        path.push_back({live[a], live[b]});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(b));
        live[a] = network.num_operands() + static_cast<int>(path.size()) - 1;
        visit();
        live = before;
        path.pop_back();
      }
    }
  };
  visit();
  return least;
}

// Multiplications of a chain in the best order, by the textbook's dynamic programming over intervals.
double LeastChainFlops(const std::vector<int64_t>& sizes) {
  const size_t n = sizes.size() - 1;
  std::vector<std::vector<double>> cost(n, std::vector<double>(n));
  for (size_t length = 2; length <= n; ++length) {
    for (size_t i = 0; i + length <= n; ++i) {
      const size_t last = i + length - 1;
      cost[i][last] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < last; ++k) {
        const double product = 2.0 * static_cast<double>(sizes[i] * sizes[k + 1] * sizes[last + 1]);
        cost[i][last] = std::min(cost[i][last], cost[i][k] + cost[k + 1][last] + product);
      }
    }
  }
  return cost[0][n - 1];
}

TEST(PathCost, CountsTwoForASumAndOneForAProduct) {
  const Terms terms{{{0, 1}, {1, 2}, {2}}, {0, 2}, {3, 5, 7}};
  const PathCost cost = CostOf(terms.Network(), {{0, 1}, {3, 2}});
  EXPECT_EQ(cost.flops, 2 * 3 * 5 * 7 + 3 * 7);
  EXPECT_EQ(cost.largest, 21);
}

TEST(PathCost, LeavesOutWhatIsSummedBefore) {
  const Terms terms{{{0, 1}, {0, 2}}, {}, {3, 5, 7}};
  EXPECT_EQ(CostOf(terms.Network(), {{0, 1}}).flops, 2 * 3);
}

TEST(PathSearch, EveryOptimizerGivesAPath) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i) {
    const int operands = std::uniform_int_distribution<int>(1, 16)(random);
    const ContractionNetwork network =
        RandomTerms(operands, std::uniform_int_distribution<int>(1, 80)(random), 3, &random).Network();
    for (PathOptimizer optimizer :
         {PathOptimizer::kAuto, PathOptimizer::kGreedy, PathOptimizer::kLeftToRight, PathOptimizer::kOptimal}) {
      if (optimizer == PathOptimizer::kOptimal && operands > 12) continue;  // takes a while
      const absl::StatusOr<ContractionPath> path = SearchPath(network, optimizer, std::nullopt);
      ASSERT_TRUE(path.ok()) << path.status();
      ExpectIsPath(*path, operands);
      EXPECT_EQ(*path, *SearchPath(network, optimizer, std::nullopt)) << "a second search gives another path";
    }
  }
}

TEST(PathSearch, LeftToRightIsThat) {
  std::mt19937_64 random(1);
  const absl::StatusOr<ContractionPath> path =
      SearchPath(Chain(4, &random).Network(), PathOptimizer::kLeftToRight, std::nullopt);
  ASSERT_TRUE(path.ok());
  EXPECT_THAT(*path, ElementsAre(Pair(0, 1), Pair(4, 2), Pair(5, 3)));
}

TEST(PathSearch, OptimalIsTheBestOfAllPaths) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 40; ++i) {
    const ContractionNetwork network = RandomTerms(2 + i % 5, 6, 3, &random).Network();
    const absl::StatusOr<ContractionPath> path = SearchPath(network, PathOptimizer::kOptimal, std::nullopt);
    ASSERT_TRUE(path.ok());
    // The search weighs elements that are moved beside operations.
    EXPECT_LE(CostOf(network, *path).flops, LeastFlops(network) * 1.5);
  }
}

TEST(PathSearch, OfAChainIsCloseToTheBest) {
  std::mt19937_64 random(3);
  for (int matrices : {8, 30, 100}) {
    Terms terms = Chain(matrices, &random);
    const ContractionNetwork network = terms.Network();
    const absl::StatusOr<ContractionPath> path = SearchPath(network, PathOptimizer::kAuto, std::nullopt);
    ASSERT_TRUE(path.ok());
    EXPECT_LE(CostOf(network, *path).flops, LeastChainFlops(terms.sizes) * 1.02) << matrices;
  }
}

TEST(PathSearch, AutoIsNoWorseThanGreedy) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 5; ++i) {
    const ContractionNetwork network = RandomTerms(40, 50, 3, &random).Network();
    const absl::StatusOr<ContractionPath> path = SearchPath(network, PathOptimizer::kAuto, std::nullopt),
                                          greedy = SearchPath(network, PathOptimizer::kGreedy, std::nullopt);
    ASSERT_TRUE(path.ok() && greedy.ok());
    EXPECT_LE(CostOf(network, *path).flops, CostOf(network, *greedy).flops * 1.1);
  }
}

TEST(PathSearch, KeepsTheBoundOrRefuses) {
  // From the left everything stays small; the cheapest path makes an outer product of 10,000 elements.
  const Terms terms{{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, {}, {4, 100, 4, 100}};
  const ContractionNetwork network = terms.Network();
  for (PathOptimizer optimizer : {PathOptimizer::kAuto, PathOptimizer::kGreedy, PathOptimizer::kOptimal}) {
    const absl::StatusOr<ContractionPath> path = SearchPath(network, optimizer, 16);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_LE(CostOf(network, *path).largest, 16);
    const absl::Status refused = SearchPath(network, optimizer, 15).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(DetailOf(refused)->limit, "largest_intermediate");
    EXPECT_EQ(DetailOf(refused)->actual_value, 16);
  }
}

TEST(PathSearch, WithoutABoundTakesWhatItCannotAvoid) {
  // Each label meets each other one, so that the first to go leaves a tensor with all others.
  Terms terms{{}, {}, std::vector<int64_t>(11, 32)};
  for (int i = 0; i < 11; ++i) {
    for (int j = 0; j < i; ++j) terms.operands.push_back({i, j});
  }
  const ContractionNetwork network = terms.Network();
  constexpr int64_t kUsualBound = int64_t{1} << 28;
  const absl::StatusOr<ContractionPath> path = SearchPath(network, PathOptimizer::kAuto, std::nullopt);
  ASSERT_TRUE(path.ok()) << path.status();
  const double largest = CostOf(network, *path).largest;
  EXPECT_GT(largest, static_cast<double>(kUsualBound));
  const absl::Status refused = SearchPath(network, PathOptimizer::kAuto, kUsualBound).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  ASSERT_TRUE(DetailOf(refused).has_value());
  EXPECT_EQ(DetailOf(refused)->limit, "largest_intermediate");
  EXPECT_GT(DetailOf(refused)->actual_value, kUsualBound);
}

TEST(PathSearch, RefusesOptimalForMany) {
  std::mt19937_64 random(5);
  const absl::Status refused = SearchPath(Chain(17, &random).Network(), PathOptimizer::kOptimal, std::nullopt).status();
  EXPECT_EQ(DetailOf(refused)->limit, "einsum_optimal_operands");
}

TEST(PathSearch, TakesSizesPastAnyDouble) {
  Terms terms;
  for (int i = 0; i < 40; ++i) {
    terms.operands.push_back({i, i + 40});
    terms.sizes.push_back(int64_t{1} << 40);
  }
  for (int i = 0; i < 40; ++i) terms.sizes.push_back(int64_t{1} << 40);
  for (int i = 0; i < 80; ++i) terms.output.push_back(i);
  const ContractionNetwork network = terms.Network();
  for (PathOptimizer optimizer : {PathOptimizer::kAuto, PathOptimizer::kGreedy}) {
    const absl::StatusOr<ContractionPath> path = SearchPath(network, optimizer, std::nullopt);
    ASSERT_TRUE(path.ok());
    ExpectIsPath(*path, 40);
  }
}

// Networks in which pairs, neighbours or the labels of a tensor are very many.
std::vector<Terms> CrowdedTerms() {
  std::mt19937_64 random(7);
  std::vector<Terms> all;
  for (int rank : {2, 3}) all.push_back(RandomTerms(1'000, 50, rank, &random));
  all.push_back(RandomTerms(3'000, 300, 8, &random));
  all.push_back(RandomTerms(1'500, 1'000, 3, &random));
  all.push_back({std::vector<std::vector<int>>(5'000, {0}), {}, {7}});                     // one label in all of them
  all.push_back({std::vector<std::vector<int>>(5'000), {}, {}});                           // scalars
  all.push_back({std::vector<std::vector<int>>(2'000, {0, 1, 2, 3}), {0}, {2, 3, 4, 5}});  // the same operand
  Terms star{{}, {}, std::vector<int64_t>(2'001, 3)};
  for (int i = 0; i < 2'000; ++i) star.operands.push_back({0, i + 1});
  all.push_back(std::move(star));
  Terms ring{{}, {}, std::vector<int64_t>(2'000, 3)};  // a chain whose matrices share a label besides
  for (int i = 1; i < 2'000; ++i) ring.operands.push_back({0, i, i % 1'999 + 1});
  all.push_back(std::move(ring));
  return all;
}

// Time is bounded because work is, which is counted.
TEST(PathSearch, DoesABoundedAmountOfWork) {
  for (const Terms& terms : CrowdedTerms()) {
    SCOPED_TRACE(testing::Message() << terms.operands.size() << " operands, " << terms.sizes.size() << " labels");
    int64_t steps = 0;
    const absl::StatusOr<ContractionPath> path =
        SearchPath(terms.Network(), PathOptimizer::kAuto, std::nullopt, &steps);
    ASSERT_TRUE(path.ok()) << path.status();
    ExpectIsPath(*path, static_cast<int>(terms.operands.size()));
    EXPECT_GT(steps, 0);
    EXPECT_LE(steps, kMostSearchSteps);
  }
}

// A caller that does not want it any more does not wait for its end: a search may take seconds.
TEST(PathSearch, IsLeftWhenNobodyWantsIt) {
  std::mt19937_64 random(11);
  int asked = 0;
  const StopSignal::Check refuses = [&asked]() -> absl::Status {
    return ++asked < 2000 ? absl::OkStatus() : Refuse(Refusal::kCancelled, "gone");
  };
  const Terms many = RandomTerms(16'000, 16'000, 2, &random), dense = RandomTerms(16, 128, 16, &random);
  for (const auto& [terms, optimizer] :
       {std::pair(&many, PathOptimizer::kAuto), {&many, PathOptimizer::kGreedy}, {&dense, PathOptimizer::kOptimal}}) {
    asked = 0;
    StopSignal stop(refuses, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    int64_t steps = 0;
    const absl::Status left = SearchPath(terms->Network(), optimizer, std::nullopt, &steps).status();
    EXPECT_EQ(left.message(), stop.status().message());
    EXPECT_TRUE(IsRefusal(left, Refusal::kCancelled)) << left;
    EXPECT_LE(asked, 2001) << "and it asked no more";
  }
}

TEST(PathSearch, TakesManyOperands) {
  std::mt19937_64 random(6);
  for (const Terms& terms : {Chain(1'500, &random), RandomTerms(500, 20, 2, &random)}) {
    const absl::StatusOr<ContractionPath> path = SearchPath(terms.Network(), PathOptimizer::kAuto, std::nullopt);
    ASSERT_TRUE(path.ok());
    ExpectIsPath(*path, static_cast<int>(terms.operands.size()));
  }
}

}  // namespace
}  // namespace tensord
