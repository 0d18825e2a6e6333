// Programs of many stages: the work of their kernels is in proportion to their length, whatever the size of the values
// kept between stages, and their results are the reference's.

#include "backends/cpu/fused/stages.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/fused/make_plan.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/micro_axes.h"

namespace tensord::cpu {
namespace {

int32_t Number(MicroBuilder* b, double value) { return b->Constant(Literal::Scalar<double>(value)); }

// x becomes tanh(x) * 0.75 + mean(x), `stages` times.
MicroProgram MeanChain(const Axes& axes, int stages) {
  MicroBuilder b(axes);
  double count = 1;
  for (const MicroAxis& axis : axes) count *= axis.is_reduced ? static_cast<double>(axis.size) : 1;
  int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  for (int i = 0; i < stages; ++i) {
    const int32_t sum = b.Reduce(ReduceKind::kSum, x);
    const int32_t mean = b.Binary(CoreOp::kMultiply, sum, Number(&b, 0.25 / count));
    x = b.Binary(CoreOp::kAdd, b.Binary(CoreOp::kMultiply, b.Unary(CoreOp::kTanh, x), Number(&b, 0.75)), mean);
  }
  b.Result(x);
  return b.Build();
}

// x becomes (x - mean(x)) / sqrt(mean((x - mean(x))²) + 1), `layers` times: two stages each.
MicroProgram NormChain(const Axes& axes, int layers) {
  MicroBuilder b(axes);
  double count = 1;
  for (const MicroAxis& axis : axes) count *= axis.is_reduced ? static_cast<double>(axis.size) : 1;
  int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  for (int i = 0; i < layers; ++i) {
    const auto mean = [&](int32_t v) {
      return b.Binary(CoreOp::kMultiply, b.Reduce(ReduceKind::kSum, v), Number(&b, 1 / count));
    };
    const int32_t centred = b.Binary(CoreOp::kSubtract, x, mean(x));
    const int32_t variance = mean(b.Binary(CoreOp::kMultiply, centred, centred));
    x = b.Binary(CoreOp::kDivide, centred, b.Unary(CoreOp::kSqrt, b.Binary(CoreOp::kAdd, variance, Number(&b, 1))));
  }
  b.Result(x);
  return b.Build();
}

// Values that three stages need, all alive at once.
MicroProgram ManyAtOnce(const Axes& axes, int values) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  int32_t total = -1;
  for (int i = 0; i < values; ++i) {
    const int32_t y = b.Unary(CoreOp::kTanh, b.Binary(CoreOp::kMultiply, x, Number(&b, 0.1 * (i + 1))));
    const int32_t largest = b.Reduce(ReduceKind::kMax, y);
    const int32_t least = b.Reduce(ReduceKind::kMin, b.Binary(CoreOp::kMultiply, y, largest));
    const int32_t term = b.Binary(CoreOp::kMultiply, y, least);
    total = i == 0 ? term : b.Binary(CoreOp::kAdd, total, term);
  }
  b.Result(total);
  return b.Build();
}

// A product that a sum takes, and a result whose memory a factor of both may have, in either order of the two.
MicroProgram ProductBesideResult(const Axes& axes, bool result_first) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  const int32_t is_large = b.Compare(CompareDirection::kGt, x, Number(&b, 0.5));
  const int32_t y = b.Select(is_large, b.Binary(CoreOp::kMultiply, x, x),
                             b.Binary(CoreOp::kAdd, b.Binary(CoreOp::kMultiply, x, Number(&b, 2)), Number(&b, 1)));
  const int32_t t = b.Binary(CoreOp::kSubtract, y, b.Reduce(ReduceKind::kMax, y));
  int32_t result = result_first ? b.Binary(CoreOp::kMultiply, t, x) : -1;
  const int32_t product = b.Binary(CoreOp::kMultiply, t, y);
  if (!result_first) result = b.Binary(CoreOp::kMultiply, t, x);
  const int32_t sum = b.Reduce(ReduceKind::kSum, product);
  b.Result(result);
  b.Result(sum);
  return b.Build();
}

// Spaces that fit the cache, as one group, as many, as rows and across them; split ones; and some that go through
// memory.
const std::vector<Axes>& ManyShapes() {
  static const auto* const shapes = new std::vector<Axes>{
      {Reduced(64)},
      {Kept(8), Reduced(200)},
      {Reduced(128), Kept(128)},
      {Kept(128), Reduced(128)},
      {Reduced(8), Kept(90)},
      {Reduced(40000)},
      {Reduced(150001)},
      {Kept(3), Reduced(70001)},
      {Kept(1100), Reduced(150)},
      {Reduced(20000), Kept(17)},
  };
  return *shapes;
}

bool FindsAddress(const FusedStep& step) {
  return step.kind == FusedStepKind::kLoad || step.kind == FusedStepKind::kNumbers ||
         step.kind == FusedStepKind::kSaved || step.kind == FusedStepKind::kOpen || step.kind == FusedStepKind::kClose;
}

// Steps over all elements of a tile that a group goes through, of all stages.
int64_t TileSteps(const MicroProgram& program) {
  const auto plan = MakeFusedPlan(program, {.use = JitOptions::Use::kNever});
  EXPECT_TRUE(plan.ok()) << plan.status();
  int64_t steps = 0;
  for (const FusedStage& stage : plan->stages) {
    steps += std::count_if(stage.tile.begin(), stage.tile.end(), [](const FusedStep& s) { return !FindsAddress(s); });
    steps += static_cast<int64_t>(stage.repeats.size() + (plan->is_split ? plan->leaves.size() : 0));
  }
  return steps;
}

TEST(FusedStagesTest, WorkIsInProportionToTheProgram) {
  for (const Axes& axes : ManyShapes()) {
    for (const MicroProgram& program : {MeanChain(axes, 50), NormChain(axes, 25), ManyAtOnce(axes, 20)}) {
      const int64_t steps = TileSteps(program);
      EXPECT_LE(steps, 2 * static_cast<int64_t>(program.instructions.size()))
          << AxesText(axes) << ", " << program.num_stages() << " stages";
    }
  }
}

FusedStages StagesOf(const MicroProgram& program, bool lends_memory, bool is_large) {
  FusedStagesRequest request{.is_live = std::vector<bool>(program.instructions.size(), true),
                             .lends_memory = std::vector<bool>(program.results.size(), lends_memory),
                             .is_large = is_large};
  for (const MicroInstruction& instruction : program.instructions) {
    request.is_full.push_back(instruction.level == MicroLevel::kFull);
  }
  return FindFusedStages(program, request);
}

// How often the values at all points are computed, the leaves apart.
int64_t Computations(const MicroProgram& program, const FusedStages& stages) {
  int64_t count = 0;
  for (int32_t stage = 0; stage < program.num_stages(); ++stage) {
    for (size_t v = 0; v < program.instructions.size(); ++v) {
      const bool is_leaf = program.instructions[v].operands[0] < 0;
      count += !is_leaf && stages.Computes(stage, v) ? 1 : 0;
    }
  }
  return count;
}

TEST(FusedStagesTest, WhatIsKeptSharesMemory) {
  const Axes axes = {Kept(4), Reduced(9)};
  const MicroProgram means = MeanChain(axes, 50), norms = NormChain(axes, 25);
  for (const bool is_large : {false, true}) {
    // One value at a time, in memory of its own or in that of the result.
    EXPECT_EQ(StagesOf(means, false, is_large).own_bytes(), SizeOf(DType::kF64));
    EXPECT_EQ(StagesOf(means, true, is_large).own_bytes(), 0);
    EXPECT_EQ(StagesOf(norms, false, is_large).own_bytes(), SizeOf(DType::kF64));
    EXPECT_EQ(StagesOf(norms, true, is_large).own_bytes(), 0);
  }
  // 50 × (tanh, multiply, add); 25 × (subtract, multiply, divide), of which the cheap ones may come again.
  EXPECT_EQ(Computations(means, StagesOf(means, false, false)), 150);
  EXPECT_LE(Computations(norms, StagesOf(norms, false, false)), 125);
  EXPECT_LE(Computations(means, StagesOf(means, false, true)), 300);
  EXPECT_EQ(StagesOf(ManyAtOnce(axes, 20), true, true).own_bytes(), 19 * SizeOf(DType::kF64));
}

TEST(FusedStagesTest, WhatIsReadOnceMoreIsComputedAgainWhereItWouldGoThroughMemory) {
  const MicroProgram softmax = SoftmaxProgram(1000, 3, DType::kF32);
  EXPECT_EQ(StagesOf(softmax, false, false).own_bytes(), SizeOf(DType::kF32));
  EXPECT_EQ(StagesOf(softmax, false, true).own_bytes(), 0);
}

void ExpectTheReference(const MicroProgram& program, const std::string& what) {
  std::mt19937_64 random(3);
  const std::vector<Literal> tensors = {
      RandomLiteral({DType::kF64, {program.num_points(MicroLevel::kFull)}}, Values::kModest, &random)};
  const Literal want = EvaluateMicroProgram(program, tensors)[0];
  ForEachInstructionSet([&](const std::string& set) {
    const Fused kernel(program);
    if (!kernel.ok()) return;
    const std::vector<std::string> got = kernel.Run(tensors, 1);
    EXPECT_EQ(kernel.Run(tensors, 3), got) << what << " on " << set;
    for (size_t i = 0; i < want.values<double>().size(); ++i) {
      double value = 0;
      std::memcpy(&value, got[0].data() + i * sizeof(double), sizeof(double));
      const double exact = want.values<double>()[i];
      ASSERT_LE(std::abs(value - exact), 1e-9 * (1 + std::abs(exact)))
          << what << " on " << set << ", element " << i << "\n"
          << kernel.Describe();
    }
  });
}

TEST(FusedStagesTest, ResultsAreThoseOfTheReference) {
  for (const Axes& axes : ManyShapes()) {
    int64_t points = 1;
    for (const MicroAxis& axis : axes) points *= axis.size;
    const int stages = points > 50000 ? 4 : 24;
    ExpectTheReference(MeanChain(axes, stages), absl::StrCat("means over ", AxesText(axes)));
    ExpectTheReference(NormChain(axes, stages / 2), absl::StrCat("norms over ", AxesText(axes)));
    for (const bool result_first : {false, true}) {
      ExpectTheReference(ProductBesideResult(axes, result_first), absl::StrCat("products over ", AxesText(axes)));
    }
    ExpectTheReference(ManyAtOnce(axes, points > 50000 ? 8 : 20), absl::StrCat("many over ", AxesText(axes)));
  }
}

}  // namespace
}  // namespace tensord::cpu
