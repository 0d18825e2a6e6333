// Products that run the elementwise kernel that follows them, block by block: random ones against the reference
// evaluator, with the same bits as the two kernels by themselves, for any number of threads, with code and without.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMostReferenceWork = 200'000;  // multiplications

class RandomProduct {
 public:
  explicit RandomProduct(uint64_t seed) : random_(seed), is_part_(seed % 8 == 5), g_("product") {
    dtype_ = random_.OneOf<DType>(
        {DType::kF32, DType::kF32, DType::kF32, DType::kF64, DType::kF64, DType::kBF16, DType::kF16, DType::kC64});
    rows_ = random_.OneOf<int64_t>({5, 16, 24, 48, 50, 96, 100, 200});
    columns_ = random_.OneOf<int64_t>({2, 3, 8, 9, 16, 40, 64, 130});
    depth_ = random_.OneOf<int64_t>({4, 5, 16, 33, 64, 400, 1500});
    if (random_.Below(3) == 0) batch_ = {random_.OneOf<int64_t>({2, 3, 5})};
    if (depth_ > 64 && random_.Below(2) == 0) rows_ = columns_ = 40;
  }

  Graph Make() {
    ValueId x = Product();
    dtype_ = g_.DTypeOf(x);
    if (random_.Below(4) == 0) x = Permuted(x);
    if (random_.Below(12) == 0) g_.Output("product", x);
    shape_ = g_.ShapeOf(x);
    if (is_part_) x = FirstPart(x);
    for (int64_t i = 1 + random_.Below(4); i-- > 0;) {
      x = Step(x);
      if (i > 0 && random_.Below(8) == 0) g_.Output(absl::StrCat("also", i), x);
    }
    if (random_.Below(4) == 0 && is_real())
      x = g_.Convert(x, random_.OneOf<DType>({DType::kBF16, DType::kF32, DType::kF64}));
    g_.Output("y", x);
    return g_.Take();
  }

  int64_t work() const { return rows_ * columns_ * depth_ * (batch_.empty() ? 1 : batch_[0]); }

 private:
  bool is_real() const { return dtype_ != DType::kC64; }
  ValueId NewInput(const Shape& shape) { return g_.Input(absl::StrCat("x", inputs_++), dtype_, shape); }

  // [rows, columns, batch], of operands with their axes either way round. Rows may be two axes.
  ValueId Product() {
    const bool lhs_turned = random_.Below(2) == 0, rhs_turned = random_.Below(2) == 0;
    const bool two_axes = batch_.empty() && !lhs_turned && rows_ % 4 == 0 && random_.Below(4) == 0;
    Shape lhs = lhs_turned ? Shape{depth_, rows_} : Shape{rows_, depth_};
    if (two_axes) lhs = {rows_ / 4, 4, depth_};
    Shape rhs = rhs_turned ? Shape{columns_, depth_} : Shape{depth_, columns_};
    lhs.insert(lhs.end(), batch_.begin(), batch_.end());
    rhs.insert(rhs.end(), batch_.begin(), batch_.end());
    const Ints batch = batch_.empty() ? Ints{} : Ints{2};
    return g_.Dot(NewInput(lhs), NewInput(rhs),
                  {lhs_turned ? 0
                   : two_axes ? 2
                              : 1},
                  {rhs_turned ? 1 : 0}, batch, batch);
  }

  ValueId Permuted(ValueId x) {
    Ints order(g_.ShapeOf(x).size());
    std::iota(order.begin(), order.end(), 0);
    random_.Shuffle(&order);
    return g_.Transpose(x, order);
  }

  // The first elements of the product, which lie as densely as all of it.
  ValueId FirstPart(ValueId x) {
    shape_.back() = (shape_.back() + 1) / 2;
    return g_.Slice(x, Ints(shape_.size(), 0), Ints(shape_.begin(), shape_.end()));
  }

  // Repeated over all axes but one.
  ValueId Bias() {
    const int64_t axis = random_.Below(static_cast<int64_t>(shape_.size()));
    return g_.Broadcast(NewInput({shape_[static_cast<size_t>(axis)]}), shape_, {axis});
  }

  ValueId Step(ValueId x) {
    switch (random_.Below(is_real() ? 10 : 4)) {
      case 0:
        return g_.Binary(CoreOp::kAdd, x, Bias());
      case 1:
        return g_.Binary(CoreOp::kMultiply, x, Bias());
      case 2:
        return g_.Binary(CoreOp::kSubtract, x, NewInput(shape_));
      case 3: {  // a residual that lies the other way round
        Ints back(shape_.size());
        std::iota(back.rbegin(), back.rend(), 0);
        return g_.Binary(CoreOp::kAdd, x, g_.Transpose(NewInput({shape_.rbegin(), shape_.rend()}), back));
      }
      case 4:
        return g_.Binary(CoreOp::kMultiply, g_.Binary(CoreOp::kMaximum, x, 0.0), 0.5);
      case 5: {
        const ValueId cube = g_.Binary(CoreOp::kMultiply, x, g_.Binary(CoreOp::kMultiply, x, x));
        const ValueId inner = g_.Binary(CoreOp::kAdd, x, g_.Binary(CoreOp::kMultiply, cube, 0.044715));
        return g_.Binary(CoreOp::kMultiply, x, g_.Binary(CoreOp::kAdd, g_.Unary(CoreOp::kTanh, inner), 1.0));
      }
      case 6:
        return g_.Binary(CoreOp::kMultiply, x, g_.Unary(CoreOp::kLogistic, x));
      case 7:
        return g_.Clamp(g_.Scalar(dtype_, -2), x, g_.Scalar(dtype_, 2));
      case 8: {  // what lies before a diagonal
        const ValueId column = g_.Iota(DType::kI32, shape_, 0);
        const ValueId row = g_.Iota(DType::kI32, shape_, static_cast<int64_t>(shape_.size()) - 1);
        return g_.Select(g_.Compare(CompareDirection::kLe, column, row), x,
                         g_.Broadcast(g_.Scalar(dtype_, -100), shape_, {}));
      }
      default:
        return g_.Convert(g_.Convert(x, DType::kBF16), dtype_);
    }
  }

  RandomChoices random_;
  const bool is_part_;
  StaticGraphBuilder g_;
  DType dtype_ = DType::kF32;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  int64_t depth_ = 1;
  Ints batch_;
  Shape shape_;
  int inputs_ = 0;
};

bool HasEpilogue(const ChainedRun& run) {
  return absl::StrContains(run.kernels, "on each block of the segment before");
}

TEST(ProductEpilogues, AgreeWithTheReferenceAndHaveTheBitsOfSeparateKernels) {
  constexpr int kMaxThreads = 3;
  const std::unique_ptr<Backend> plain = MakeCpuBackend({.threads = 2, .epilogues = CpuUse::kOff});
  std::vector<std::unique_ptr<Backend>> backends;
  for (int threads = 1; threads <= kMaxThreads; ++threads) {
    backends.push_back(MakeCpuBackend({.threads = threads, .epilogues = CpuUse::kOn}));
  }
  backends.push_back(MakeCpuBackend({.threads = 3, .jit = CpuUse::kOn, .epilogues = CpuUse::kOn}));
  backends.push_back(MakeCpuBackend({.threads = 3, .jit = CpuUse::kOff, .epilogues = CpuUse::kOn}));
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = 600});
  int with_epilogues = 0, in_place = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    SCOPED_TRACE(absl::StrCat("TENSORD_SEED=", seed, " TENSORD_GRAPHS=1"));
    RandomProduct product(seed);
    const Graph graph = product.Make();
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto want = RunChained(plain.get(), graph, {}, arguments, false);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_FALSE(HasEpilogue(*want));
    if (product.work() <= kMostReferenceWork) {
      Graph typed = graph;
      const auto guards = InferTypes(&typed);
      ASSERT_TRUE(guards.ok()) << guards.status();
      const auto bounded = property::EvaluateBounded(typed, *guards, arguments);
      ASSERT_TRUE(bounded.ok()) << bounded.status();
      for (size_t i = 0; i < bounded->size(); ++i) {
        ASSERT_EQ(property::DifferenceFrom(want->results[i], (*bounded)[i]), "") << "output " << i;
      }
    }
    for (const std::unique_ptr<Backend>& backend : backends) {
      const auto got = RunChained(backend.get(), graph, {}, arguments, seed % 2 == 1);
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t i = 0; i < want->results.size(); ++i) {
        ASSERT_TRUE(got->results[i].bytes() == want->results[i].bytes()) << "output " << i << "\n" << got->kernels;
      }
      if (backend != backends[0]) continue;
      with_epilogues += HasEpilogue(*got) ? 1 : 0;
      in_place += absl::StrContains(got->kernels, "in its memory") ? 1 : 0;
    }
  }
  // If epilogues never formed, this test would say nothing.
  if (seeds.count >= 100) {
    EXPECT_GT(with_epilogues * 2, seeds.count);
    EXPECT_GT(in_place * 20, seeds.count);
  }
}

// Rounding is an epilogue too, which results whose columns are two axes with the batch between them cannot have.
TEST(ProductEpilogues, RoundedResultsWithAxesBetweenOneAnother) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    StaticGraphBuilder g("columns");
    const ValueId x = g.Input("x", dtype, {64, 32, 4}), y = g.Input("y", dtype, {32, 6, 5, 4});
    g.Output("z", g.Transpose(g.Dot(x, y, {1}, {0}, {2}, {3}), {0, 1, 3, 2}));
    Graph graph = g.Take();
    std::mt19937_64 random(7);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    for (const CpuUse use : {CpuUse::kOff, CpuUse::kOn}) {
      const auto got = RunChained(MakeCpuBackend({.threads = 2, .epilogues = use}).get(), graph, {}, arguments, false);
      ASSERT_TRUE(got.ok()) << got.status();
      Graph typed = graph;
      const auto guards = InferTypes(&typed);
      ASSERT_TRUE(guards.ok()) << guards.status();
      const auto bounded = property::EvaluateBounded(typed, *guards, arguments);
      ASSERT_TRUE(bounded.ok()) << bounded.status();
      EXPECT_EQ(property::DifferenceFrom(got->results[0], (*bounded)[0]), "") << Name(dtype);
    }
  }
}

// bf16(relu(w·x + b)), of which the product alone would take 4 bytes an element.
Graph RoundedLayer(int64_t rows, int64_t columns, int64_t depth) {
  StaticGraphBuilder g("layer");
  const ValueId w = g.Input("w", DType::kF32, {rows, depth}), x = g.Input("x", DType::kF32, {depth, columns});
  const ValueId b = g.Broadcast(g.Input("b", DType::kF32, {rows}), {rows, columns}, {0});
  const ValueId y = g.Binary(CoreOp::kMaximum, g.Binary(CoreOp::kAdd, g.Dot(w, x, {1}, {0}), b), 0.0);
  g.Output("y", g.Convert(y, DType::kBF16));
  return g.Take();
}

TEST(ProductEpilogues, LeaveNoMemoryToTheProduct) {
  constexpr int64_t kRows = 512, kColumns = 3000, kProductBytes = kRows * kColumns * 4;
  const Graph graph = RoundedLayer(kRows, kColumns, 16);
  std::mt19937_64 random(5);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const auto backend = [](CpuUse use) {
    return MakeCpuBackend({.threads = 2, .epilogues = use, .chain_block_bytes = -1});
  };
  const auto want = RunChained(backend(CpuUse::kOff).get(), graph, {}, arguments, false);
  const auto got = RunChained(backend(CpuUse::kOn).get(), graph, {}, arguments, false);
  const auto small = RunChained(backend(CpuUse::kAuto).get(), graph, {}, arguments, false);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(small.ok()) << small.status();
  ASSERT_FALSE(HasEpilogue(*want));
  ASSERT_TRUE(HasEpilogue(*got));
  EXPECT_EQ(got->chained, 2u);
  EXPECT_FALSE(HasEpilogue(*small)) << "what stays in the caches anyway";
  EXPECT_GE(want->temporary_bytes, kProductBytes);
  EXPECT_LT(got->temporary_bytes, kProductBytes / 2) << "a block for each core";
  EXPECT_TRUE(got->results[0].bytes() == want->results[0].bytes());
}

TEST(ProductEpilogues, TellTheTimeOfEachSegment) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 2, .epilogues = CpuUse::kOn});
  Graph graph = RoundedLayer(200, 100, 30);
  std::mt19937_64 random(6);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const CompileSettings settings{.device = "test:0"};
  const ProgramKey key = MakeProgramKey(graph, settings);
  const auto program = Compile(std::move(graph), settings, key.fingerprint, backend.get());
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<ConcreteType> types;
  std::vector<BufferPtr> buffers;
  for (const Literal& argument : arguments) {
    types.push_back(argument.type());
    auto buffer = backend->Import(argument.bytes().data(), static_cast<int64_t>(argument.bytes().size()), nullptr);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    buffers.push_back(*std::move(buffer));
  }
  const auto bound = (*program)->Bind(types);
  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_EQ((*bound)->sessions()[0].prepared->chains().size(), 1u);
  std::vector<SegmentTime> times((*bound)->num_segments());
  ASSERT_EQ(times.size(), 2u);
  ASSERT_TRUE((*bound)->Run(buffers, nullptr, absl::MakeSpan(times)).ok());
  EXPECT_LE(times[0].start, times[0].end);
  EXPECT_EQ(times[0].end, times[1].start);
  EXPECT_LE(times[1].start, times[1].end);
  EXPECT_LT(times[0].start, times[1].end);
}

}  // namespace
}  // namespace tensord
