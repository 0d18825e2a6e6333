// Reductions of one tensor that run together, slab by slab: random ones against the reference evaluator, with the same
// bits for any number of threads, on every instruction set.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

// Reductions of a tensor over some of its axes each, with something before or after.
class RandomReductions {
 public:
  explicit RandomReductions(uint64_t seed) : random_(seed), g_("reductions") {
    dtype_ = random_.OneOf<DType>({DType::kF32, DType::kF64, DType::kF64, DType::kI32, DType::kC64, DType::kBF16});
    int64_t elements = 1;
    for (int64_t rank = 1 + random_.Below(4); rank-- > 0;) {
      const int64_t size = random_.OneOf<int64_t>({1, 2, 3, 4, 8, 16, 17, 32, 64, 100});
      shape_.push_back(elements * size > 30000 ? 2 : size);
      elements *= shape_.back();
    }
    if (random_.Below(40) == 0) shape_[static_cast<size_t>(random_.Below(static_cast<int64_t>(shape_.size())))] = 0;
  }

  Graph Make() {
    x_ = g_.Input("x", dtype_, shape_);
    weights_ = g_.Input("weights", dtype_, shape_);
    if (random_.Below(20) == 0) {  // of no tensor at all
      g_.Output("count", g_.Reduce(ReduceKind::kSum, g_.Iota(DType::kI32, {5, 7}, 0), {1}));
      g_.Output("most", g_.Reduce(ReduceKind::kMax, g_.Iota(DType::kI32, {5, 7}, 1), {0}));
    }
    for (int64_t i = 0, count = 2 + random_.Below(5); i < count; ++i) g_.Output(absl::StrCat("y", i), Reduction());
    return g_.Take();
  }

 private:
  Ints ReducedAxes() {
    Ints axes;
    const bool all = random_.Below(4) == 0;
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (all || random_.Below(2) == 0) axes.push_back(static_cast<int64_t>(d));
    }
    if (axes.empty()) axes.push_back(random_.Below(static_cast<int64_t>(shape_.size())));
    return axes;
  }

  ValueId Reduction() {
    ValueId y = g_.Reduce(Kind(), Reduced(), ReducedAxes());
    switch (random_.Below(5)) {
      case 0:
        return g_.Unary(CoreOp::kNegate, y);
      case 1:
        return g_.Binary(CoreOp::kSubtract, g_.Binary(CoreOp::kMultiply, y, y), y);
      default:
        return y;
    }
  }

  ReduceKind Kind() {
    return random_.OneOf<ReduceKind>({ReduceKind::kSum, ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin});
  }

  ValueId Reduced() {
    switch (random_.Below(7)) {
      case 6:
        return g_.Binary(CoreOp::kSubtract, x_, Repeated());
      case 0:
        return g_.Binary(CoreOp::kMultiply, x_, x_);
      case 1:
        return g_.Binary(CoreOp::kMultiply, x_, weights_);
      case 2: {  // counted from where a slab begins
        const ValueId index = g_.Iota(DType::kI32, shape_, static_cast<int64_t>(shape_.size()) - 1);
        return g_.Binary(CoreOp::kAdd, x_, g_.Convert(index, dtype_));
      }
      default:
        return x_;
    }
  }

  // A reduction that has to be done before anybody reads it, as itself or as a view.
  ValueId Repeated() {
    const Ints axes = ReducedAxes();
    ValueId sums = g_.Reduce(Kind(), x_, axes);
    g_.Output(absl::StrCat("before", num_before_++), sums);
    if (random_.Below(2) == 0) {
      sums = g_.Apply(CoreOp::kOptimizationBarrier, {sums}, StaticGraphBuilder::AttrsOf(CoreOp::kOptimizationBarrier));
    }
    Ints kept;
    for (int64_t d = 0; d < static_cast<int64_t>(shape_.size()); ++d) {
      if (std::find(axes.begin(), axes.end(), d) == axes.end()) kept.push_back(d);
    }
    return g_.Broadcast(sums, shape_, kept);
  }

  RandomChoices random_;
  StaticGraphBuilder g_;
  int num_before_ = 0;
  DType dtype_ = DType::kF32;
  Shape shape_;
  ValueId x_ = {};
  ValueId weights_ = {};
};

// How many graphs had reductions that ran together.
int CountJoined(int count) {
  std::vector<std::vector<std::unique_ptr<Backend>>> backends;  // by size of blocks, by threads
  for (const int64_t bytes : {256, 4000, 30000}) {
    auto& of_size = backends.emplace_back();
    for (const int threads : {1, 3})
      of_size.push_back(MakeCpuBackend({.threads = threads, .chain_block_bytes = bytes}));
  }
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = count});
  int joined = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    SCOPED_TRACE(absl::StrCat("TENSORD_SEED=", seed, " TENSORD_GRAPHS=1"));
    const Graph graph = RandomReductions(seed).Make();
    Graph typed = graph;
    const auto guards = InferTypes(&typed);
    EXPECT_TRUE(guards.ok()) << guards.status();
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto want = property::EvaluateBounded(typed, *guards, arguments);
    EXPECT_TRUE(want.ok()) << want.status();
    bool is_joined = false;
    for (const auto& of_size : backends) {
      std::vector<Literal> first;
      for (const std::unique_ptr<Backend>& backend : of_size) {
        const auto got = RunChained(backend.get(), graph, {}, arguments, false);
        EXPECT_TRUE(got.ok()) << got.status();
        if (!got.ok() || got->results.size() != want->size()) return joined;
        is_joined |= absl::StrContains(got->kernels, " slabs of ");
        if (first.empty()) first = got->results;
        for (size_t i = 0; i < want->size(); ++i) {
          EXPECT_EQ(property::DifferenceFrom(got->results[i], (*want)[i]), "") << "output " << i << "\n"
                                                                               << got->kernels;
          EXPECT_TRUE(got->results[i].bytes() == first[i].bytes()) << "output " << i << "\n" << got->kernels;
        }
        if (testing::Test::HasFailure()) return joined;
      }
    }
    if (is_joined) ++joined;
  }
  return seeds.count < 100 ? seeds.count : joined;
}

TEST(SharedReductions, AgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) {
  cpu::ForEachInstructionSet([](const char*) { EXPECT_GT(CountJoined(600), 100); });
}

// Five over different axes: the one along the slowest axis would leave parts as large as slabs and runs by itself.
TEST(SharedReductions, ReadSlabsOnceWhateverTheAxes) {
  const Graph graph = FiveReductionsGraph(32);
  std::mt19937_64 random(5);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const std::unique_ptr<Backend> plain = MakeCpuBackend({.threads = 2, .chain_block_bytes = -1});
  const std::unique_ptr<Backend> joining = MakeCpuBackend({.threads = 2, .chain_block_bytes = 1 << 15});
  const auto want = RunChained(plain.get(), graph, {}, arguments, false);
  const auto got = RunChained(joining.get(), graph, {}, arguments, false);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->segments, 5u);
  EXPECT_EQ(got->chained, 5u);
  EXPECT_TRUE(absl::StrContains(got->kernels, "16 slabs of 16384 bytes, which 3 other segments read")) << got->kernels;
  for (size_t i = 0; i < want->results.size(); ++i) {
    const std::vector<double> radius(static_cast<size_t>(want->results[i].type().num_elements()), 1e-9);
    EXPECT_EQ(property::DifferenceFrom(got->results[i], {.value = want->results[i], .radius = radius}), "") << i;
  }
}

// Tensors in the last cache are as near the second time.
TEST(SharedReductions, OfSmallTensorsRunByThemselves) {
  const Graph graph = FiveReductionsGraph(32);
  std::mt19937_64 random(5);
  const auto got = RunChained(MakeCpuBackend({.threads = 2}).get(), graph, {}, ArgumentsOf(graph, &random), false);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->chained, 0u);
}

}  // namespace
}  // namespace tensord
