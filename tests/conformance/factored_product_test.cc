// Contractions whose operands are products of factors that nobody else reads, multiplied as they are packed: random
// ones against the reference evaluator, with the same bits for any number of threads.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/machine/cache_sizes.h"
#include "backends/cpu/matmul/tiles.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/graphs/labelled_tensor.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"

namespace tensord {
namespace {

// Each label is in the left operand, in the right one, summed or of the batch.
class RandomFactors {
 public:
  explicit RandomFactors(uint64_t seed) : random_(seed), g_("factors") {
    dtype_ = random_.OneOf<DType>({DType::kF32, DType::kF64, DType::kF64, DType::kF64, DType::kC64, DType::kBF16});
  }

  Graph Make() {
    const Labels left = NewLabels(random_.OneOf<Shape>({{40}, {17, 4}, {16, 3, 2}, {5, 9}, {33}}));
    const Labels right = NewLabels(random_.OneOf<Shape>({{12}, {9}, {8, 3}, {3, 20}, {64}}));
    const Labels summed = NewLabels(random_.OneOf<Shape>({{5}, {16}, {4, 7}, {33}, {3, 2, 5}}));
    const Labels batch = random_.Below(3) == 0 ? NewLabels(random_.OneOf<Shape>({{2}, {3}, {2, 2}})) : Labels{};
    const bool factors_right = random_.Below(4) == 0;
    const LabelledTensor a = Factored({left, summed, batch});
    const LabelledTensor b = factors_right ? Factored({right, summed, batch}) : Input(Joined({right, summed, batch}));
    if (random_.Below(12) == 0) g_.Output("also", a.value);
    const bool turns = random_.Below(2) == 0;
    LabelledTensor product = Contract(&g_, turns ? b : a, turns ? a : b, summed, batch);
    if (random_.Below(3) > 0) {
      // Rows are those of the operand with the first axis of the result, either way round.
      Labels order = Joined(random_.Below(2) == 0 ? std::vector{left, right, batch} : std::vector{right, left, batch});
      if (random_.Below(3) == 0) random_.Shuffle(&order);
      product.value = g_.Transpose(product.value, PositionsOf(order, product.labels));
    }
    g_.Output("y", product.value);
    return g_.Take();
  }

 private:
  Labels NewLabels(const Shape& sizes) {
    Labels labels;
    for (const int64_t size : sizes) {
      labels.push_back(static_cast<int64_t>(sizes_.size()));
      sizes_.push_back(size);
    }
    return labels;
  }
  static Labels Joined(const std::vector<Labels>& parts) {
    Labels labels;
    for (const Labels& part : parts) labels.insert(labels.end(), part.begin(), part.end());
    return labels;
  }
  LabelledTensor Input(Labels labels) {
    random_.Shuffle(&labels);
    return {g_.Input(absl::StrCat("x", inputs_++), dtype_, ShapeOf(labels, sizes_)), labels};
  }

  // Two or three factors with parts of the labels each, all of them or none, in any order of their axes.
  LabelledTensor Factored(const std::vector<Labels>& parts) {
    Labels labels = Joined(parts);
    random_.Shuffle(&labels);
    const bool are_whole = random_.Below(6) == 0, has_scalar = random_.Below(6) == 0;
    const int64_t factors = has_scalar || random_.Below(4) == 0 ? 3 : 2;
    ValueId product;
    for (int64_t i = 0; i < factors; ++i) {
      Labels own;
      for (size_t k = 0; k < labels.size() && !(has_scalar && i == 2); ++k) {
        // Every label is in one of the first two at least.
        const bool has = i == 0   ? k % 2 == 0 || random_.Below(3) == 0
                         : i == 1 ? k % 2 == 1 || random_.Below(3) == 0
                                  : random_.Below(2) == 0;
        if (has || are_whole) own.push_back(labels[k]);
      }
      const ValueId spread = Spread(&g_, Input(own), labels, sizes_).value;
      const bool is_after = random_.Below(2) == 0;
      product = i == 0     ? spread
                : is_after ? g_.Binary(CoreOp::kMultiply, product, spread)
                           : g_.Binary(CoreOp::kMultiply, spread, product);
    }
    return {product, labels};
  }

  RandomChoices random_;
  StaticGraphBuilder g_;
  DType dtype_ = DType::kF64;
  std::vector<int64_t> sizes_;  // by label
  int inputs_ = 0;
};

bool PacksFactors(const ChainedRun& run) { return absl::StrContains(run.kernels, "packs products of factors"); }

TEST(FactoredProducts, AgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 500});
  std::vector<std::unique_ptr<Backend>> backends;
  for (const int threads : {1, 2, 3}) {
    backends.push_back(MakeCpuBackend({.threads = threads, .epilogues = CpuUse::kOn, .chain_block_bytes = -1}));
  }
  int packed = 0, packed_alone = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    SCOPED_TRACE(absl::StrCat("TENSORD_SEED=", seed, " TENSORD_GRAPHS=1"));
    const Graph graph = RandomFactors(seed).Make();
    Graph typed = graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto want = property::EvaluateBounded(typed, *guards, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    // Then a multiplication is an op of its own, of tensors that are spread already.
    const std::vector<std::string> disabled =
        seed % 4 == 3 ? std::vector<std::string>{"fuse"} : std::vector<std::string>{};
    std::vector<Literal> first;
    for (const std::unique_ptr<Backend>& backend : backends) {
      const auto got = RunChained(backend.get(), graph, disabled, arguments, seed % 2 == 1);
      ASSERT_TRUE(got.ok()) << got.status();
      if (first.empty()) {
        first = got->results;
        packed += PacksFactors(*got) ? 1 : 0;
        packed_alone += PacksFactors(*got) && !disabled.empty() ? 1 : 0;
      }
      ASSERT_EQ(got->results.size(), want->size());
      for (size_t i = 0; i < want->size(); ++i) {
        ASSERT_EQ(property::DifferenceFrom(got->results[i], (*want)[i]), "") << "output " << i << "\n" << got->kernels;
        ASSERT_TRUE(got->results[i].bytes() == first[i].bytes()) << "output " << i << "\n" << got->kernels;
      }
    }
  }
  // If nothing was packed so, this test would say nothing.
  if (seeds.count >= 100 && cpu::GetGemmTiles(DType::kF64).rows > 0) {
    EXPECT_GT(packed * 3, seeds.count);
    EXPECT_GT(packed_alone * 20, seeds.count);
  }
}

// ia,ja,ka->ijk: the products of rows of two matrices, 51 MB of them, have no memory.
TEST(FactoredProducts, OfLargeMatricesAreNotWritten) {
  if (cpu::GetGemmTiles(DType::kF64).rows == 0) GTEST_SKIP() << "no loops for this machine";
  StaticGraphBuilder g("khatri_rao");
  const Shape all = {200, 200, 160};
  const ValueId a = g.Input("a", DType::kF64, {200, 160}), b = g.Input("b", DType::kF64, {200, 160});
  const ValueId c = g.Input("c", DType::kF64, {96, 160});
  const ValueId product = g.Binary(CoreOp::kMultiply, g.Broadcast(a, all, {0, 2}), g.Broadcast(b, all, {1, 2}));
  g.Output("y", g.Dot(product, c, {2}, {1}));
  const Graph graph = g.Take();
  std::mt19937_64 random(7);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const auto run = RunChained(MakeCpuBackend({.threads = 2}).get(), graph, {}, arguments, false);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(PacksFactors(*run)) << run->kernels;
  EXPECT_LT(run->temporary_bytes, 2 * cpu::MachineCacheSizes().l2);  // panels
}

}  // namespace
}  // namespace tensord
