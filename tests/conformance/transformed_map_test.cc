// Transforms with maps between, which run together: random ones against the reference, with the same bits for any
// number of threads.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "engine/tensor/dtype.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"

namespace tensord {
namespace {

constexpr absl::string_view kFft = "tensord.fft.v1.Fft";
constexpr int64_t kForward = 1, kInverse = 2;
using Axes = StaticGraphBuilder::Axes;

ValueId Transformed(StaticGraphBuilder* g, ValueId x, int64_t kind, const Axes& axes, int64_t norm = 0) {
  Attributes attrs = StaticGraphBuilder::AttrsOf(kFft);
  attrs.Set("kind", kind).Set("axes", axes).Set("norm", norm);
  return g->ApplyNamed(kFft, {x}, std::move(attrs))[0];
}

class RandomFilter {
 public:
  explicit RandomFilter(uint64_t seed) : random_(seed), g_("filter") {
    shape_ = random_.OneOf<Shape>({{16, 12},
                                   {24, 33},
                                   {8, 5, 6},
                                   {3, 16, 7},
                                   {1, 12, 20},
                                   {12, 1, 16},
                                   {4, 9, 4, 5},
                                   {300, 6},
                                   {6, 300},
                                   {64},
                                   {16, 2, 10}});
    is_batched_ = random_.Below(3) == 0;
  }

  Graph Make() {
    const DType dtype = random_.OneOf<DType>({DType::kF32, DType::kF64, DType::kC64, DType::kC128, DType::kC128});
    const ValueId x = g_.Input("x", dtype, shape_);
    const ValueId spectrum = Transformed(&g_, x, Kind(), SomeAxes(), random_.Below(3));
    if (random_.Below(8) == 0) g_.Output("spectrum", spectrum);
    const ValueId filtered = Filtered(spectrum);
    if (random_.Below(8) == 0) g_.Output("filtered", filtered);
    g_.Output("y", Transformed(&g_, filtered, Kind(), SomeAxes(), random_.Below(3)));
    return g_.Take();
  }

 private:
  int64_t Kind() { return random_.Below(2) == 0 ? kForward : kInverse; }
  // In any order; now and then one of them twice, and none.
  Axes SomeAxes() {
    Axes axes(shape_.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (is_batched_) axes.pop_back();
    random_.Shuffle(&axes);
    if (random_.Below(3) == 0) axes.resize(static_cast<size_t>(random_.Below(static_cast<int64_t>(axes.size()) + 1)));
    if (!axes.empty() && random_.Below(10) == 0) axes.push_back(axes[0]);
    return axes;
  }

  // Returns a factor of the spectrum's shape, from a tensor that has some of its axes.
  ValueId Factor(DType dtype, absl::string_view name) {
    Axes axes;
    Shape sizes;
    for (size_t d = 0; d < shape_.size(); ++d) {
      if (random_.Below(2) == 0) continue;
      axes.push_back(static_cast<int64_t>(d));
      sizes.push_back(shape_[d]);
    }
    return g_.Broadcast(g_.Input(name, dtype, sizes), shape_, axes);
  }

  ValueId Filtered(ValueId spectrum) {
    const DType dtype = g_.DTypeOf(spectrum), real = RealPartOf(dtype);
    switch (random_.Below(5)) {
      case 0:  // a product by itself
        return g_.Binary(CoreOp::kMultiply, spectrum, g_.Input("k", dtype, shape_));
      case 1:
        return g_.Binary(CoreOp::kMultiply, Factor(dtype, "k"), spectrum);
      case 2: {
        const ValueId sum = g_.Binary(CoreOp::kAdd, Factor(real, "k"), Factor(real, "l"));
        return g_.Binary(CoreOp::kMultiply, spectrum, g_.Convert(sum, dtype));
      }
      case 3:
        return g_.Binary(CoreOp::kSubtract, g_.Binary(CoreOp::kMultiply, spectrum, Factor(dtype, "k")), spectrum);
      default: {  // integers are counted from the place of the lines
        const ValueId index =
            g_.Convert(g_.Iota(DType::kI32, shape_, random_.Below(static_cast<int64_t>(shape_.size()))), dtype);
        return g_.Binary(CoreOp::kAdd, g_.Unary(CoreOp::kNegate, spectrum), index);
      }
    }
  }

  RandomChoices random_;
  StaticGraphBuilder g_;
  Shape shape_;
  bool is_batched_ = false;  // the slowest axis is not transformed
};

bool HasMapBetween(const ChainedRun& run) {
  return std::any_of(run.joins.begin(), run.joins.end(),
                     [](const JoinCount& join) { return join.way == "transforms" && join.segments > 0; });
}

TEST(TransformedMaps, AgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) {
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 400});
  struct Blocks {
    int64_t bytes;
    std::vector<std::unique_ptr<Backend>> backends;  // by threads
  };
  std::vector<Blocks> all_blocks;
  for (const int64_t bytes : {4000, 100000}) {
    Blocks& blocks = all_blocks.emplace_back(Blocks{.bytes = bytes, .backends = {}});
    for (const int threads : {1, 2, 3}) {
      blocks.backends.push_back(MakeCpuBackend({.threads = threads, .chain_block_bytes = bytes}));
    }
  }
  int together = 0, together_alone = 0, by_blocks = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    SCOPED_TRACE(absl::StrCat("TENSORD_SEED=", seed, " TENSORD_GRAPHS=1"));
    const Graph graph = RandomFilter(seed).Make();
    Graph typed = graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto want = EvaluateReference(typed, *guards, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    // Then the map is an op of its own.
    const std::vector<std::string> disabled =
        seed % 4 == 3 ? std::vector<std::string>{"fuse"} : std::vector<std::string>{};
    for (const Blocks& blocks : all_blocks) {
      std::vector<Literal> first;
      for (const std::unique_ptr<Backend>& backend : blocks.backends) {
        const auto got = RunChained(backend.get(), graph, disabled, arguments, seed % 2 == 1);
        ASSERT_TRUE(got.ok()) << got.status();
        if (first.empty()) {
          first = got->results;
          together += HasMapBetween(*got) ? 1 : 0;
          together_alone += HasMapBetween(*got) && !disabled.empty() ? 1 : 0;
          by_blocks += absl::StrContains(got->kernels, "fft") && got->chained > 0 && !HasMapBetween(*got) ? 1 : 0;
        }
        ASSERT_EQ(got->results.size(), want->size());
        for (size_t i = 0; i < want->size(); ++i) {
          const bool is_double = RealPartOf((*want)[i].dtype()) == DType::kF64;
          ASSERT_EQ(Difference(got->results[i], (*want)[i], {.norm_relative = is_double ? 1e-14 : 4e-6}), "")
              << "output " << i << "\n"
              << got->kernels;
          ASSERT_TRUE(got->results[i].bytes() == first[i].bytes()) << "output " << i << "\n" << got->kernels;
        }
      }
    }
  }
  // If nothing ran together, this test would say nothing.
  if (seeds.count >= 100) {
    EXPECT_GT(together * 6, seeds.count);
    EXPECT_GT(together_alone, 0);
    EXPECT_GT(by_blocks * 20, seeds.count);
  }
}

// The spectrum has no memory, of 4 MiB each time.
TEST(TransformedMaps, OfLargeTensorsHaveNoSpectrum) {
  StaticGraphBuilder g("filter");
  const ValueId x = g.Input("x", DType::kC128, {512, 512}), k = g.Input("k", DType::kC128, {512, 512});
  const ValueId spectrum = Transformed(&g, x, kForward, {0, 1});
  g.Output("y", Transformed(&g, g.Binary(CoreOp::kMultiply, spectrum, k), kInverse, {0, 1}));
  const Graph graph = g.Take();
  std::mt19937_64 random(7);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const auto run =
      RunChained(MakeCpuBackend({.threads = 2, .chain_block_bytes = 1 << 19}).get(), graph, {}, arguments, false);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(HasMapBetween(*run)) << run->kernels;
  EXPECT_LT(run->temporary_bytes, 2 << 20);  // some lines for each thread
}

}  // namespace
}  // namespace tensord
