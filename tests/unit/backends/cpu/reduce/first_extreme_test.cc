// The first place of the greatest or least element: against the reference, on every instruction set.

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_evaluator.h"
#include "tests/testlib/numbers/literal_of.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/unit/backends/cpu/fused/call.h"
#include "tests/unit/backends/cpu/instruction_sets.h"
#include "tests/unit/backends/cpu/micro_axes.h"

namespace tensord::cpu {
namespace {

struct Form {
  bool greatest = true;
  bool asks_for_nan = true;
  bool is_swapped = false;
  DType index = DType::kI64;
};

MicroProgram FirstExtreme(const Axes& axes, DType dtype, const Form& form) {
  MicroBuilder b(axes);
  const int32_t x = b.Load(dtype, MicroLevel::kFull);
  const int32_t best = b.Reduce(form.greatest ? ReduceKind::kMax : ReduceKind::kMin, x);
  int32_t found =
      form.is_swapped ? b.Compare(CompareDirection::kEq, best, x) : b.Compare(CompareDirection::kEq, x, best);
  if (form.asks_for_nan) {
    const int32_t is_nan = b.Compare(CompareDirection::kNe, x, x);
    found = form.is_swapped ? b.Binary(CoreOp::kOr, is_nan, found) : b.Binary(CoreOp::kOr, found, is_nan);
  }
  MicroAccess numbers;
  numbers.strides.assign(axes.size(), 0);
  numbers.strides[0] = 1;
  const int64_t end = axes[0].size;
  const int32_t otherwise =
      b.Constant(form.index == DType::kI32 ? Literal::Scalar(static_cast<int32_t>(end)) : Literal::Scalar(end));
  const int32_t number = b.Select(found, b.Iota(form.index, MicroLevel::kFull, numbers), otherwise);
  b.Result(b.Reduce(ReduceKind::kMin, number));
  return b.Build();
}

void ExpectReference(const MicroProgram& program, Literal x, const std::string& what) {
  std::vector<Literal> tensors;
  tensors.push_back(std::move(x));
  const std::vector<Literal> want = EvaluateMicroProgram(program, tensors);
  const Fused fused(program);
  ASSERT_TRUE(fused.ok()) << what;
  EXPECT_TRUE(absl::StrContains(fused.Describe(), "in one pass")) << what << ": " << fused.Describe();
  for (const int threads : {1, 2, 5}) {
    const std::string got = fused.Run(tensors, threads)[0];
    ASSERT_EQ(got, want[0].bytes()) << what << " on " << threads << " threads";
  }
}

const std::vector<Axes>& Rows() {
  static const auto* const rows = new std::vector<Axes>{
      {Reduced(256)},          {Reduced(1027)},          {Reduced(50001)},          {Reduced(300007)},
      {Reduced(777), Kept(3)}, {Reduced(300), Kept(41)}, {Reduced(70000), Kept(5)}, {Reduced(1024), Kept(4), Kept(2)},
  };
  return *rows;
}

TEST(FirstExtremeTest, IsTheReferences) {
  ForEachInstructionSet([](const char* set) {
    std::mt19937_64 random(3);
    for (const Axes& axes : Rows()) {
      for (const DType dtype : {DType::kI32, DType::kI64, DType::kF32, DType::kF64}) {
        for (const bool greatest : {true, false}) {
          const bool is_whole = kIntegers.Contains(dtype);
          const Form form{.greatest = greatest,
                          .asks_for_nan = !is_whole || greatest,
                          .is_swapped = axes.size() > 1,
                          .index = axes[0].size % 2 == 0 ? DType::kI32 : DType::kI64};
          const MicroProgram program = FirstExtreme(axes, dtype, form);
          // Whole numbers from -3 to 3 have their extremes many times, edges NaN.
          for (const Values values : {Values::kModest, Values::kIntegers, Values::kEdges}) {
            Literal x = RandomLiteral({dtype, {program.num_points(MicroLevel::kFull)}}, values, &random);
            ExpectReference(program, std::move(x), absl::StrCat(set, " ", AxesText(axes), Name(dtype)));
          }
        }
      }
    }
  });
}

// Each place of a row, at the ends of vectors, blocks and parts.
TEST(FirstExtremeTest, FindsEachPlace) {
  constexpr int64_t kLength = 40000;
  const MicroProgram program = FirstExtreme({Reduced(kLength)}, DType::kF64, {});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  ForEachInstructionSet([&](const char* set) {
    for (const int64_t place : {0, 1, 7, 8, 1023, 1024, 1025, 19999, 20000, 39990, 39999}) {
      for (const double value : {5.0, kNan, HUGE_VAL}) {
        std::vector<double> x(kLength, -1.0);
        x[static_cast<size_t>(place)] = value;
        x[kLength - 1] = value;
        x[kLength / 2 + 3] = std::isnan(value) ? HUGE_VAL : 2;
        ExpectReference(program, LiteralOf(x), absl::StrCat(set, " ", value, " at ", place));
      }
    }
    for (const double all : {-HUGE_VAL, kNan, 0.0}) {
      ExpectReference(program, LiteralOf(std::vector<double>(kLength, all)), absl::StrCat(set, " all ", all));
    }
    std::vector<double> zeros(kLength, -0.0);
    zeros[5000] = 0.0;  // equals the others
    ExpectReference(program, LiteralOf(zeros), "zeros of both signs");
  });
}

// Programs with other questions belong to another kernel.
TEST(FirstExtremeTest, LeavesOtherQuestions) {
  const Axes axes = {Reduced(4096)};
  const auto describe = [](const MicroProgram& program) { return Fused(program).Describe(); };
  EXPECT_FALSE(absl::StrContains(describe(FirstExtreme(axes, DType::kF32, {.asks_for_nan = false})), "in one pass"));
  MicroProgram far = FirstExtreme(axes, DType::kF32, {});
  for (MicroInstruction& instruction : far.instructions) {
    if (instruction.kind == MicroKind::kIota) instruction.access.strides[0] = -1;
  }
  EXPECT_FALSE(absl::StrContains(describe(far), "in one pass"));
  MicroProgram last = FirstExtreme(axes, DType::kF32, {});
  for (MicroInstruction& instruction : last.instructions) {
    if (instruction.stage == 2 && instruction.kind == MicroKind::kReduce) instruction.reduce = ReduceKind::kMax;
  }
  EXPECT_FALSE(absl::StrContains(describe(last), "in one pass"));
}

}  // namespace
}  // namespace tensord::cpu
