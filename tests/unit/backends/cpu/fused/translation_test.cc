// The steps of a fused kernel that become one piece of code.

#include "backends/cpu/fused/translation.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/fused/make_plan.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/unit/backends/cpu/micro_axes.h"

namespace tensord::cpu {
namespace {

constexpr int kFunctions = 12;

int32_t Scaled(MicroBuilder* b, int32_t x, double factor) {
  const int32_t number = b->Constant(Literal::Scalar<double>(factor));
  return b->Binary(CoreOp::kAdd, b->Binary(CoreOp::kMultiply, x, number), number);
}

// Each function reads what the one before gave.
MicroProgram Chain(CoreOp function) {
  MicroBuilder b({Kept(5000)});
  int32_t y = b.Load(DType::kF64, MicroLevel::kFull);
  for (int i = 0; i < kFunctions; ++i) y = Scaled(&b, Scaled(&b, b.Unary(function, y), 0.5), 0.25);
  b.Result(y);
  return b.Build();
}

// Each function reads x.
MicroProgram Sum(CoreOp function) {
  MicroBuilder b({Kept(5000)});
  const int32_t x = b.Load(DType::kF64, MicroLevel::kFull);
  int32_t sum = x;
  for (int i = 0; i < kFunctions; ++i) sum = b.Binary(CoreOp::kAdd, sum, b.Unary(function, Scaled(&b, x, 0.1 * i)));
  b.Result(sum);
  return b.Build();
}

int64_t Pieces(const MicroProgram& program) {
  const auto plan = MakeFusedPlan(program, JitOptions());
  EXPECT_TRUE(plan.ok()) << plan.status();
  const std::vector<FusedStep>& tile = plan->stages[0].tile;
  return std::count_if(tile.begin(), tile.end(), [](const FusedStep& step) {
    return step.kind == FusedStepKind::kRun || step.kind == FusedStepKind::kFunction;
  });
}

TEST(FusedTranslationTest, FunctionsThatWaitForOneAnotherAreCutApart) {
  if (BestJitIsa() == JitIsa::kNone) GTEST_SKIP() << "no code on this processor";
  EXPECT_GE(Pieces(Chain(CoreOp::kTanh)), kFunctions);
  EXPECT_GE(Pieces(Chain(CoreOp::kExp)), kFunctions / 2);
  EXPECT_EQ(Pieces(Sum(CoreOp::kTanh)), 1);
  EXPECT_EQ(Pieces(Sum(CoreOp::kExp)), 1);
}

// A row that is gone through at once has all of its functions in one piece: not where they would wait.
TEST(FusedTranslationTest, LongRowsOfManyFunctionsAreGoneThroughInTiles) {
  if (BestJitIsa() != JitIsa::kAvx512) GTEST_SKIP() << "no code for rows on this processor";
  const auto has_rows = [](int64_t length, int functions) {
    MicroBuilder b({Reduced(length), Kept(9000 / length)});
    int32_t y = b.Load(DType::kF64, MicroLevel::kFull);
    for (int i = 0; i < functions; ++i) y = Scaled(&b, b.Unary(CoreOp::kTanh, y), 0.5);
    b.Result(b.Binary(CoreOp::kSubtract, y, b.Reduce(ReduceKind::kMax, y)));
    const auto plan = MakeFusedPlan(b.Build(), {.use = JitOptions::Use::kAlways});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->rows.has_value();
  };
  EXPECT_TRUE(has_rows(300, 1));
  EXPECT_FALSE(has_rows(300, kFunctions));
}

}  // namespace
}  // namespace tensord::cpu
