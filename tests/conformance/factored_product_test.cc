// Contractions whose operands are products of factors that nobody else reads, multiplied where they are packed: random
// ones against the reference evaluator, with the same bits for any number of threads.
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
#include "backends/cpu/gemm_tiles.h"
#include "engine/ir/verifier.h"
#include "tests/testlib/chained_run.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/static_graph_builder.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

// Each label is in the left operand, in the right one, summed or of the batch.
class RandomFactors {
 public:
  explicit RandomFactors(uint64_t seed) : random_(seed), g_("factors") {
    dtype_ = OneOf<DType>({DType::kF32, DType::kF64, DType::kF64, DType::kF64, DType::kC64, DType::kBF16});
  }

  Graph Make() {
    Ints left = Labels(OneOf<Ints>({{40}, {17, 4}, {16, 3, 2}, {5, 9}, {33}}));
    Ints right = Labels(OneOf<Ints>({{12}, {9}, {8, 3}, {3, 20}, {64}}));
    Ints summed = Labels(OneOf<Ints>({{5}, {16}, {4, 7}, {33}, {3, 2, 5}}));
    Ints batch = Below(3) == 0 ? Labels(OneOf<Ints>({{2}, {3}, {2, 2}})) : Ints{};
    const bool factors_right = Below(4) == 0;
    const Tensor a = Factored({left, summed, batch}),
                 b = factors_right ? Factored({right, summed, batch}) : Input(Joined({right, summed, batch}));
    if (Below(12) == 0) g_.Output("also", a.value);
    Ints labels = left;
    labels.insert(labels.end(), right.begin(), right.end());
    labels.insert(labels.end(), batch.begin(), batch.end());
    // Either way round: rows are those of the operand with the first axis of the result.
    const bool turns = Below(2) == 0;
    if (turns) {
      labels = right;
      labels.insert(labels.end(), left.begin(), left.end());
      labels.insert(labels.end(), batch.begin(), batch.end());
    }
    const Tensor &x = turns ? b : a, &y = turns ? a : b;
    ValueId product = g_.Dot(x.value, y.value, PositionsOf(summed, x.labels), PositionsOf(summed, y.labels),
                             PositionsOf(batch, x.labels), PositionsOf(batch, y.labels));
    // The axes that a side has left come in its own order.
    Ints made;
    for (const Tensor* tensor : {&x, &y}) {
      for (const int64_t label : tensor->labels) {
        if (!Has(summed, label) && !Has(batch, label)) made.push_back(label);
      }
    }
    made.insert(made.end(), batch.begin(), batch.end());
    product = g_.Transpose(product, PositionsOf(labels, made));
    if (Below(3) == 0) {
      Ints shuffled = labels;
      std::shuffle(shuffled.begin(), shuffled.end(), random_);
      product = g_.Transpose(product, PositionsOf(shuffled, labels));
    }
    g_.Output("y", product);
    return g_.Take();
  }

 private:
  struct Tensor {
    ValueId value;
    Ints labels;
  };

  int64_t Below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  template <typename T>
  T OneOf(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(Below(static_cast<int64_t>(choices.size())))];
  }
  static bool Has(const Ints& labels, int64_t label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
  Ints Labels(const Ints& sizes) {
    Ints labels;
    for (const int64_t size : sizes) {
      labels.push_back(static_cast<int64_t>(sizes_.size()));
      sizes_.push_back(size);
    }
    return labels;
  }
  static Ints Joined(const std::vector<Ints>& parts) {
    Ints labels;
    for (const Ints& part : parts) labels.insert(labels.end(), part.begin(), part.end());
    return labels;
  }
  Shape ShapeOf(const Ints& labels) const {
    Shape shape;
    for (const int64_t label : labels) shape.push_back(sizes_[static_cast<size_t>(label)]);
    return shape;
  }
  static Ints PositionsOf(const Ints& labels, const Ints& in) {
    Ints positions;
    for (const int64_t label : labels) {
      positions.push_back(std::find(in.begin(), in.end(), label) - in.begin());
    }
    return positions;
  }
  Tensor Input(Ints labels) {
    std::shuffle(labels.begin(), labels.end(), random_);
    return {g_.Input(absl::StrCat("x", inputs_++), dtype_, ShapeOf(labels)), labels};
  }

  // Two or three factors with parts of the labels each, in any order of their axes.
  Tensor Factored(const std::vector<Ints>& parts) {
    Ints labels = Joined(parts);
    std::shuffle(labels.begin(), labels.end(), random_);
    const int64_t factors = Below(4) == 0 ? 3 : 2;
    ValueId product;
    for (int64_t i = 0; i < factors; ++i) {
      Ints own;
      for (size_t k = 0; k < labels.size(); ++k) {
        // Every label is in the first two of them or in one of these.
        const bool has = i == 0 ? k % 2 == 0 || Below(3) == 0 : i == 1 ? k % 2 == 1 || Below(3) == 0 : Below(2) == 0;
        if (has) own.push_back(labels[k]);
      }
      Tensor x = Input(own);
      Ints order;
      for (const int64_t label : labels) {
        if (Has(own, label)) order.push_back(label);
      }
      const ValueId spread = g_.Broadcast(g_.Transpose(x.value, PositionsOf(order, x.labels)), ShapeOf(labels),
                                          PositionsOf(order, labels));
      const bool is_after = Below(2) == 0;
      product = i == 0     ? spread
                : is_after ? g_.Binary(CoreOp::kMultiply, product, spread)
                           : g_.Binary(CoreOp::kMultiply, spread, product);
    }
    return {product, labels};
  }

  std::mt19937_64 random_;
  StaticGraphBuilder g_;
  DType dtype_ = DType::kF64;
  Ints sizes_;  // by label
  int inputs_ = 0;
};

bool PacksFactors(const ChainedRun& run) { return absl::StrContains(run.kernels, "packs products of factors"); }

TEST(FactoredProducts, AgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 500});
  std::vector<std::unique_ptr<Backend>> backends;
  for (const int threads : {1, 2, 3}) {
    backends.push_back(MakeCpuBackend({.threads = threads, .epilogues = CpuUse::kOn, .chain_block_bytes = -1}));
  }
  int packed = 0;
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
    std::vector<Literal> first;
    for (const std::unique_ptr<Backend>& backend : backends) {
      const auto got = RunChained(backend.get(), graph, {}, arguments, seed % 2 == 1);
      ASSERT_TRUE(got.ok()) << got.status();
      if (first.empty()) {
        first = got->results;
        packed += PacksFactors(*got) ? 1 : 0;
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
  EXPECT_LT(run->temporary_bytes, 1 << 20);  // panels
}

}  // namespace
}  // namespace tensord
