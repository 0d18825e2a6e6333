// Segments that run together, block by block: random chains of products, softmaxes and elementwise ops against the
// reference evaluator, with the same bits for any number of threads.
//
// TENSORD_SEED=N chooses the first seed, TENSORD_GRAPHS=N the number of graphs.

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/verifier.h"
#include "engine/runtime/compile/compiler.h"
#include "tests/testlib/graphs/bench_graphs.h"
#include "tests/testlib/graphs/labelled_tensor.h"
#include "tests/testlib/graphs/random_choices.h"
#include "tests/testlib/graphs/static_graph_builder.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/seed_range.h"
#include "tests/testlib/runs/chained_run.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

class RandomChain {
 public:
  explicit RandomChain(uint64_t seed) : random_(seed), g_("chain") {
    dtype_ = random_.OneOf<DType>({DType::kF32, DType::kF32, DType::kF64, DType::kI32, DType::kC64});
    length_ = random_.OneOf<int64_t>({1, 2, 3, 5, 8, 16, 17, 33, 64});
    rows_ = random_.OneOf<int64_t>({1, 2, 4, 6, 8, 12, 16, 32});
    for (int64_t i = random_.Below(3); i-- > 0;) batch_.push_back(random_.OneOf<int64_t>({1, 2, 3, 4}));
  }

  Graph Make() {
    const int64_t depth = random_.OneOf<int64_t>({1, 4, 7, 16});
    const int64_t start = random_.Below(4);
    ValueId x = start == 0 ? Input(length_) : start == 1 ? PermutedProduct(depth, length_) : Product(depth, length_);
    for (int64_t i = 1 + random_.Below(4); i-- > 0;) {
      const ValueId next = Step(x);
      if (random_.Below(8) == 0) g_.Output(absl::StrCat("also", i), x);
      x = next;
    }
    g_.Output("y", x);
    return g_.Take();
  }

 private:
  bool is_real_float() const { return dtype_ != DType::kI32 && dtype_ != DType::kC64; }

  Shape ShapeFor(int64_t length, int64_t rows) const {
    Shape shape = {length, rows};
    shape.insert(shape.end(), batch_.begin(), batch_.end());
    return shape;
  }
  ValueId NewInput(const Shape& shape) { return g_.Input(absl::StrCat("x", inputs_++), dtype_, shape); }
  ValueId Input(int64_t length) { return NewInput(ShapeFor(length, rows_)); }

  static Ints Iota(size_t count, int64_t first = 0) {
    Ints axes(count);
    std::iota(axes.begin(), axes.end(), first);
    return axes;
  }
  Ints Batch() const { return Iota(batch_.size(), 2); }

  // [length, rows, batch] of [depth, length, batch], or a matrix for all of the batch, and [depth, rows, batch].
  ValueId Product(int64_t depth, int64_t length) {
    return g_.Dot(NewInput(ShapeFor(depth, length)), NewInput(ShapeFor(depth, rows_)), {0}, {0}, Batch(), Batch());
  }

  // The same, made with the axes in another order and transposed: the product writes that itself.
  ValueId PermutedProduct(int64_t depth, int64_t length) {
    Ints batch_order = Iota(batch_.size());
    random_.Shuffle(&batch_order);
    const bool is_swapped = batch_.size() < 2 || random_.Below(2) == 0;
    Shape left = {depth, is_swapped ? rows_ : length}, right = {depth, is_swapped ? length : rows_};
    Ints back = is_swapped ? Ints{1, 0} : Ints{0, 1};
    back.resize(2 + batch_.size());
    for (size_t i = 0; i < batch_order.size(); ++i) {
      const size_t axis = static_cast<size_t>(batch_order[i]);
      left.push_back(batch_[axis]);
      right.push_back(batch_[axis]);
      back[2 + axis] = static_cast<int64_t>(2 + i);
    }
    return g_.Transpose(g_.Dot(NewInput(left), NewInput(right), {0}, {0}, Batch(), Batch()), back);
  }

  ValueId Step(ValueId x) {
    const int64_t length = g_.ShapeOf(x)[0];
    switch (random_.Below(is_real_float() ? 9 : 6)) {
      case 0: {  // by a matrix, the same for all
        const Shape shape = g_.ShapeOf(x);
        return g_.Dot(NewInput({random_.OneOf<int64_t>({1, 3, 8}), length}), x, {1}, {0});
      }
      case 1:  // by a matrix for each of the batch
        return g_.Dot(NewInput(ShapeFor(random_.OneOf<int64_t>({1, 4, 9}), length)), x, {1}, {0}, Batch(), Batch());
      case 2:
        return g_.Binary(CoreOp::kAdd, x, g_.Broadcast(NewInput({length}), g_.ShapeOf(x), {0}));
      case 3:
        return g_.Binary(CoreOp::kMultiply, x, g_.Broadcast(NewInput({rows_}), g_.ShapeOf(x), {1}));
      case 4:
        return g_.Binary(CoreOp::kSubtract, x, Input(length));
      case 5: {
        const ValueId sum = g_.ReduceAndRepeat(ReduceKind::kSum, x, {0});
        return g_.Binary(CoreOp::kSubtract, x, sum);
      }
      case 6: {  // what lies before a diagonal
        const ValueId key = g_.Iota(DType::kI32, {length, rows_}, 0), row = g_.Iota(DType::kI32, {length, rows_}, 1);
        const ValueId mask = g_.Compare(CompareDirection::kLe, key, row);
        return g_.Select(g_.Broadcast(mask, g_.ShapeOf(x), {0, 1}), x,
                         g_.Broadcast(g_.Scalar(dtype_, -100), g_.ShapeOf(x), {}));
      }
      case 7:
        return g_.Unary(CoreOp::kTanh, x);
      default: {
        const ValueId most = g_.ReduceAndRepeat(ReduceKind::kMax, x, {0});
        const ValueId e = g_.Unary(CoreOp::kExp, g_.Binary(CoreOp::kSubtract, x, most));
        return g_.Binary(CoreOp::kDivide, e, g_.ReduceAndRepeat(ReduceKind::kSum, e, {0}));
      }
    }
  }

  RandomChoices random_;
  StaticGraphBuilder g_;
  DType dtype_ = DType::kF32;
  int64_t length_ = 1;
  int64_t rows_ = 1;
  Ints batch_;
  int inputs_ = 0;
};

// A contraction of products that are made for it alone: of tensors with labels, each a contraction over a label of its
// own or a product of broadcasts. One of the contraction's operands may be an input.
class RandomJoin {
 public:
  explicit RandomJoin(uint64_t seed) : random_(seed), g_("join") {
    dtype_ = random_.OneOf<DType>({DType::kF32, DType::kF64, DType::kF64, DType::kI32, DType::kC64, DType::kBF16});
    for (int label = 0; label < kLabels; ++label) sizes_.push_back(random_.OneOf<int64_t>({1, 2, 2, 3, 3, 4, 5, 6}));
  }

  Graph Make() {
    Ints common, left, right, summed;
    for (int label = 0; label < kOwnLabel; ++label) {
      switch (random_.Below(5)) {
        case 0:
        case 1:
          common.push_back(label);
          break;
        case 2:
          summed.push_back(label);
          break;
        default:
          (random_.Below(2) == 0 ? left : right).push_back(label);
      }
    }
    const LabelledTensor a = Operand({common, left, summed}, 0);
    const LabelledTensor b = Operand({common, right, summed}, 1);
    LabelledTensor y = Contract(&g_, a, b, summed, common);
    if (random_.Below(4) == 0) g_.Output("also", a.value);
    if (random_.Below(3) == 0) {
      Ints order(y.labels.size());
      std::iota(order.begin(), order.end(), 0);
      random_.Shuffle(&order);
      y.value = g_.Transpose(y.value, order);
    }
    g_.Output("y", y.value);
    return g_.Take();
  }

 private:
  static constexpr int kLabels = 9;
  static constexpr int kOwnLabel = 7;  // those from here on are summed in a product

  LabelledTensor Input(Labels labels) {
    random_.Shuffle(&labels);
    return {g_.Input(absl::StrCat("x", inputs_++), dtype_, ShapeOf(labels, sizes_)), labels};
  }

  LabelledTensor Operand(const std::vector<Labels>& parts, int side) {
    Labels labels;
    for (const Labels& part : parts) labels.insert(labels.end(), part.begin(), part.end());
    if (side == 1 && random_.Below(3) == 0) return Input(labels);
    Labels first, second, both;
    for (const int64_t label : labels) {
      const int64_t holder = random_.Below(4);
      if (holder != 0) first.push_back(label);
      if (holder != 1) second.push_back(label);
      if (holder > 1) both.push_back(label);
    }
    if (random_.Below(2) == 0) {
      const Labels own = {kOwnLabel + side};
      first.push_back(own[0]);
      second.push_back(own[0]);
      const LabelledTensor x = Input(first), y = Input(second);
      return Contract(&g_, x, y, own, both);
    }
    random_.Shuffle(&labels);
    const LabelledTensor x = Input(first), y = Input(second);
    return {g_.Binary(CoreOp::kMultiply, Spread(&g_, x, labels, sizes_).value, Spread(&g_, y, labels, sizes_).value),
            labels};
  }

  RandomChoices random_;
  StaticGraphBuilder g_;
  DType dtype_ = DType::kF32;
  Ints sizes_;  // by label
  int inputs_ = 0;
};

// The graphs of a generator agree with the reference, and have the same bits on any number of threads.
template <typename Generator>
void ExpectAgreement(int count) {
  constexpr int kMaxThreads = 3;
  struct Blocks {
    int64_t bytes;
    std::vector<std::unique_ptr<Backend>> backends;  // by threads
  };
  std::vector<Blocks> all_blocks;
  for (const int64_t bytes : {64, 1000, 20000}) {
    Blocks& blocks = all_blocks.emplace_back(Blocks{.bytes = bytes, .backends = {}});
    for (int threads = 1; threads <= kMaxThreads; ++threads) {
      blocks.backends.push_back(MakeCpuBackend({.threads = threads, .chain_block_bytes = bytes}));
    }
  }
  const property::SeedRange seeds = property::ChosenSeeds({.first = 0, .count = count});
  size_t graphs_with_chains = 0;
  for (uint64_t seed = seeds.first; seed < seeds.first + static_cast<uint64_t>(seeds.count); ++seed) {
    SCOPED_TRACE(absl::StrCat("TENSORD_SEED=", seed, " TENSORD_GRAPHS=1"));
    const Graph graph = Generator(seed).Make();
    Graph typed = graph;
    const auto guards = InferTypes(&typed);
    ASSERT_TRUE(guards.ok()) << guards.status();
    std::mt19937_64 random(seed);
    const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
    const auto want = property::EvaluateBounded(typed, *guards, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    const std::vector<std::string> disabled =
        seed % 4 == 3 ? std::vector<std::string>{"fuse"} : std::vector<std::string>{};
    size_t chained = 0;
    for (const Blocks& blocks : all_blocks) {
      std::vector<Literal> first;
      for (const std::unique_ptr<Backend>& backend : blocks.backends) {
        const auto got = RunChained(backend.get(), graph, disabled, arguments, seed % 2 == 1);
        ASSERT_TRUE(got.ok()) << got.status();
        chained += got->chained;
        if (first.empty()) first = got->results;
        ASSERT_EQ(got->results.size(), want->size());
        for (size_t i = 0; i < want->size(); ++i) {
          ASSERT_EQ(property::DifferenceFrom(got->results[i], (*want)[i]), "") << "output " << i << "\n"
                                                                               << got->kernels;
          ASSERT_TRUE(got->results[i].bytes() == first[i].bytes()) << "output " << i << "\n" << got->kernels;
        }
      }
    }
    if (chained > 0) ++graphs_with_chains;
  }
  // If chains never formed, this test would say nothing.
  if (seeds.count >= 100) {
    EXPECT_GT(graphs_with_chains * 4, static_cast<size_t>(seeds.count));
  }
}

TEST(SegmentChains, AgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) { ExpectAgreement<RandomChain>(1000); }

TEST(SegmentChains, JoinsOfProductsAgreeWithTheReferenceAndHaveTheSameBitsOnAnyThreads) {
  ExpectAgreement<RandomJoin>(1000);
}

// The scores of all heads would take 64 MiB.
TEST(SegmentChains, AttentionKeepsItsScoresInTheCache) {
  Graph graph = AttentionGraph(16, 1024, 16);
  std::mt19937_64 random(5);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const std::unique_ptr<Backend> plain = MakeCpuBackend({.threads = 2, .chain_block_bytes = -1});
  const std::unique_ptr<Backend> chaining = MakeCpuBackend({.threads = 2});
  const auto want = RunChained(plain.get(), graph, {}, arguments, false);
  const auto got = RunChained(chaining.get(), graph, {}, arguments, false);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->segments, 3u);
  EXPECT_EQ(got->chained, 3u);
  EXPECT_TRUE(absl::StrContains(got->kernels, "blocks together with 2 other segments")) << got->kernels;
  EXPECT_GE(want->temporary_bytes, int64_t{64} << 20);
  EXPECT_LE(got->temporary_bytes, int64_t{16} << 20);
  EXPECT_TRUE(got->results[0].bytes() == want->results[0].bytes());
}

// Two products of broadcasts over three labels each, of 32 MiB, that are multiplied and summed over one of them.
TEST(SegmentChains, ProductsOfBroadcastsFeedTheirContractionByBoxes) {
  constexpr int64_t kSize = 64, kRows = 16;
  const Shape shape = {kSize, kRows, kSize, kSize};
  StaticGraphBuilder g("join");
  std::vector<ValueId> products;
  for (int side = 0; side < 2; ++side) {
    const ValueId x = g.Input(absl::StrCat("x", side), DType::kF64, {kSize, kRows, kSize});
    const ValueId y = g.Input(absl::StrCat("y", side), DType::kF64, {kSize, kSize});
    products.push_back(g.Binary(CoreOp::kMultiply, g.Broadcast(x, shape, {0, 1, 2}), g.Broadcast(y, shape, {0, 3})));
  }
  g.Output("y", g.Dot(products[0], products[1], {2}, {2}, {0, 3}, {0, 3}));
  const Graph graph = g.Take();
  std::mt19937_64 random(8);
  const std::vector<Literal> arguments = ArgumentsOf(graph, &random);
  const std::unique_ptr<Backend> plain =
      MakeCpuBackend({.threads = 2, .epilogues = CpuUse::kOff, .chain_block_bytes = -1});
  const std::unique_ptr<Backend> joining = MakeCpuBackend({.threads = 2, .chain_block_bytes = 1 << 20});
  const auto want = RunChained(plain.get(), graph, {}, arguments, false);
  const auto got = RunChained(joining.get(), graph, {}, arguments, false);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->segments, 3u);
  EXPECT_EQ(got->chained, 3u);
  EXPECT_TRUE(absl::StrContains(got->kernels, "64 blocks together with 2 other segments")) << got->kernels;
  EXPECT_GE(want->temporary_bytes, int64_t{64} << 20);
  EXPECT_LE(got->temporary_bytes, int64_t{8} << 20);
  // Sums of 64 modest products, which may be added up in another order.
  const std::vector<double> radius(static_cast<size_t>(want->results[0].type().num_elements()), 1e-9);
  EXPECT_EQ(property::DifferenceFrom(got->results[0], {.value = want->results[0], .radius = radius}), "");
}

// The one label that stays is of prime length: its blocks would be of one element, 4099 of them.
TEST(SegmentChains, ProductsAreNotJoinedByTinyBoxes) {
  constexpr int64_t kSize = 4099;
  const Shape shape = {8, 16, kSize};
  StaticGraphBuilder g("join");
  const ValueId a = g.Input("a", DType::kF64, {8, kSize}), b = g.Input("b", DType::kF64, {16, kSize});
  const ValueId product = g.Binary(CoreOp::kMultiply, g.Broadcast(a, shape, {0, 2}), g.Broadcast(b, shape, {1, 2}));
  g.Output("y", g.Dot(product, g.Input("c", DType::kF64, {16, 4, kSize}), {1}, {0}, {2}, {2}));
  const Graph graph = g.Take();
  std::mt19937_64 random(9);
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 1, .chain_block_bytes = 1 << 20});
  const auto got = RunChained(backend.get(), graph, {}, ArgumentsOf(graph, &random), false);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->segments, 2u);
  EXPECT_EQ(got->chained, 0u) << got->kernels;
}

TEST(SegmentChains, TellEachSegmentsTimeAndEndWhenTheRunIsNotWanted) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 2, .chain_block_bytes = 4096});
  Graph graph = AttentionGraph(8, 32, 16);
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
  ASSERT_EQ(times.size(), 3u);
  ASSERT_TRUE((*bound)->Run(buffers, nullptr, absl::MakeSpan(times)).ok());
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_LE(times[i].start, times[i].end) << i;
    EXPECT_EQ(times[i].start, i == 0 ? times[i].start : times[i - 1].end) << i;
  }
  EXPECT_LT(times.front().start, times.back().end);

  int questions = 0;
  const auto refused = (*bound)->Run(buffers, [&questions]() -> absl::Status {
    ++questions;
    return absl::CancelledError("enough");
  });
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(questions, 1);
}

}  // namespace
}  // namespace tensord
