#include "backends/cpu/joins/split_reduction.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/micro_axes.h"

namespace tensord::cpu {
namespace {

int32_t Half(MicroBuilder* b) { return b->Constant(Literal::Scalar<double>(0.5)); }

TEST(SplitReductionTest, ReductionsByThemselvesHaveNoRest) {
  MicroBuilder b({Kept(4), Reduced(6)});
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  b.Result(b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, x, x)));
  b.Result(b.Reduce(ReduceKind::kMax, x));
  const MicroProgram whole = b.Build();
  const std::optional<SplitReduction> split = Split(whole);
  ASSERT_TRUE(split.has_value());
  EXPECT_FALSE(split->rest.has_value());
  EXPECT_EQ(split->kinds, (std::vector<ReduceKind>{ReduceKind::kSum, ReduceKind::kMax}));
  EXPECT_EQ(ToString(split->reductions), ToString(whole));
}

// Results in another order are computed from the reductions too.
TEST(SplitReductionTest, TheRestComputesWhatFollows) {
  MicroBuilder b({Kept(4), Reduced(6), Kept(3)});
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  const int32_t scale = b.Load(DType::kF64, MicroLevel::kKept);
  const int32_t sum = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, x, Half(&b)));
  const int32_t most = b.Reduce(ReduceKind::kMax, x);
  b.Result(b.Binary(CoreOp::kSubtract, b.Binary(CoreOp::kMultiply, sum, scale), most));
  b.Result(sum);
  const MicroProgram whole = b.Build();
  const std::optional<SplitReduction> split = Split(whole);
  ASSERT_TRUE(split.has_value());
  ASSERT_TRUE(split->rest.has_value());
  EXPECT_FALSE(split->rest->has_reduced_axes());

  std::mt19937_64 random(3);
  std::vector<Literal> operands;
  for (const int64_t elements : {4 * 6 * 3, 4 * 3}) {
    operands.push_back(RandomLiteral({.dtype = DType::kF64, .shape = {elements}}, Values::kModest, &random));
  }
  const std::vector<Literal> want = EvaluateMicroProgram(whole, operands);
  for (const Literal& reduced : EvaluateMicroProgram(split->reductions, operands)) operands.push_back(reduced);
  const std::vector<Literal> got = EvaluateMicroProgram(*split->rest, operands);
  ASSERT_EQ(got.size(), want.size());
  for (size_t r = 0; r < want.size(); ++r) EXPECT_TRUE(got[r].bytes() == want[r].bytes()) << r;
}

TEST(SplitReductionTest, TwoStagesAndResultsAlongReducedAxesStayWhole) {
  MicroBuilder stages({Kept(4), Reduced(6)});
  const int32_t x = stages.Load(DType::kF64, MicroLevel::kFull);
  const int32_t mean = stages.Reduce(ReduceKind::kSum, x);
  stages.Result(stages.Reduce(ReduceKind::kMax, stages.Binary(CoreOp::kSubtract, x, mean)));
  EXPECT_FALSE(Split(stages.Build()).has_value());

  MicroBuilder full({Kept(4), Reduced(6)});
  const int32_t y = full.Load(DType::kF64, MicroLevel::kFull);
  full.Result(full.Binary(CoreOp::kSubtract, y, full.Reduce(ReduceKind::kSum, y)));
  EXPECT_FALSE(Split(full.Build()).has_value());
}

}  // namespace
}  // namespace tensord::cpu
