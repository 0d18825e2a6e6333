// The values that the bounds let pass, and those they do not.
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/numbers/literal_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/ir/literal_text.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/scalar/scalar_math.h"
#include "tests/testlib/property/growing_graph.h"
#include "tests/testlib/property/random_case.h"

namespace tensord::property {
namespace {

// One node on literals.
BoundedLiteral Bounded(CoreOp op, Attributes attrs, const std::vector<Literal>& operands) {
  Graph graph;
  Node node{.name = "n", .op = &Def(op), .attrs = std::move(attrs)};
  for (const Literal& operand : operands) node.operands.push_back(graph.AddInput("x", ToTensorType(operand.type())));
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  const auto guards = InferTypes(&graph);
  EXPECT_TRUE(guards.ok()) << guards.status();
  return EvaluateBounded(graph, *guards, operands).value()[0];
}

Attributes SumOfAxis0() {
  return AttrsOf(CoreOp::kReduce)
      .Set("kind", static_cast<int64_t>(ReduceKind::kSum))
      .Set("dimensions", std::vector<int64_t>{0});
}

TEST(ReferenceBoundsTest, TheReferenceIsWithinItsOwnBoundsAndOneBitBesideAnExactOneIsNot) {
  int64_t flipped = 0, moved = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const RandomCase c = MakeRandomCase({.max_nodes = 15}, seed);
    Graph graph = c.graph;
    const auto guards = InferTypes(&graph);
    ASSERT_TRUE(guards.ok()) << guards.status();
    const auto want = EvaluateBounded(graph, *guards, c.arguments[0]);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const BoundedLiteral& output : *want) {
      EXPECT_EQ(DifferenceFrom(output.value, output), "");
      const size_t size = static_cast<size_t>(SizeOf(output.value.dtype()));
      for (size_t i = 0; i < static_cast<size_t>(output.value.num_elements()); ++i) {
        Literal other = output.value;
        if (output.radius_at(i) == 0) {
          other.mutable_data()[i * size] ^= 1;
          const bool nan = VisitDType(other.dtype(), [&]<typename T>(TypeTag<T>) {
            if constexpr (ComplexElement<T>) return std::isnan(other.values<T>()[i].real());
            return std::isnan(scalar::ConvertElement<double>(other.values<T>()[i]));
          });
          if (nan) continue;  // any NaN is as good
          EXPECT_NE(DifferenceFrom(other, output), "")
              << "seed " << seed << ", element " << i << " of " << LiteralText(output.value);
          ++flipped;
        } else if (std::isfinite(output.radius_at(i)) && output.value.dtype() == DType::kF64) {
          const double x = output.value.values<double>()[i];
          const double beyond = x + 2 * output.radius_at(i) + std::ldexp(std::abs(x), -50);
          if (!std::isfinite(beyond)) continue;
          other.mutable_values<double>()[i] = beyond;
          EXPECT_NE(DifferenceFrom(other, output), "") << "seed " << seed;
          ++moved;
        }
      }
    }
  }
  EXPECT_GT(flipped, 5000);
  EXPECT_GT(moved, 100);
}

TEST(ReferenceBoundsTest, ASumInAnyOrderIsWithinAndAMissingTermIsNot) {
  std::mt19937_64 random(1);
  std::vector<float> terms(301);
  for (float& x : terms) x = std::uniform_real_distribution<float>(-1, 1)(random);
  const BoundedLiteral want = Bounded(CoreOp::kReduce, SumOfAxis0(), {LiteralOf(terms)});
  ASSERT_GT(want.radius_at(0), 0);
  for (int order = 0; order < 50; ++order) {
    std::shuffle(terms.begin(), terms.end(), random);
    float sum = 0;
    for (float x : terms) sum += x;
    EXPECT_EQ(DifferenceFrom(Literal::Scalar(sum), want), "");
    const float largest = *std::max_element(terms.begin(), terms.end());
    EXPECT_NE(DifferenceFrom(Literal::Scalar(sum - largest), want), "");
  }
}

TEST(ReferenceBoundsTest, SumsOfSmallWholeNumbersAreExact) {
  const BoundedLiteral want = Bounded(CoreOp::kReduce, SumOfAxis0(), {LiteralOf<float>({1, 2, -3, 4, 5})});
  EXPECT_EQ(want.radius_at(0), 0);
  EXPECT_NE(DifferenceFrom(Literal::Scalar(9.000001f), want), "");
}

TEST(ReferenceBoundsTest, ElementaryFunctionsMayBeFourUlpsOff) {
  const BoundedLiteral want = Bounded(CoreOp::kExp, {}, {LiteralOf<double>({0.3, 1000, -0.0})});
  const double y = want.value.values<double>()[0], spacing = SpacingAt(DType::kF64, y);
  const auto with = [&](double first, double second) { return LiteralOf<double>({first, second, 1}); };
  EXPECT_EQ(DifferenceFrom(with(y + 4 * spacing, INFINITY), want), "");
  EXPECT_NE(DifferenceFrom(with(y + 6 * spacing, INFINITY), want), "");
  EXPECT_NE(DifferenceFrom(with(y, 1e300), want), "") << "far from overflow";
  EXPECT_NE(DifferenceFrom(with(y, -INFINITY), want), "");
  EXPECT_NE(DifferenceFrom(with(y, NAN), want), "");
}

TEST(ReferenceBoundsTest, ZerosKeepTheirSignWhereNothingRounds) {
  const BoundedLiteral want = Bounded(CoreOp::kNegate, {}, {LiteralOf<float>({0.0f})});
  EXPECT_EQ(DifferenceFrom(LiteralOf<float>({-0.0f}), want), "");
  EXPECT_NE(DifferenceFrom(LiteralOf<float>({0.0f}), want), "");
}

TEST(ReferenceBoundsTest, WhatARoundingDecidesIsOpen) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {.dtype = DType::kF32, .shape = {Dim(3)}});
  const ValueId limit = graph.AddInput("limit", {.dtype = DType::kF32});
  const ValueId sum = graph.AddNode({.name = "s", .op = &Def(CoreOp::kReduce), .attrs = SumOfAxis0(), .operands = {x}});
  graph.AddOutput("y", graph.AddNode({.name = "l",
                                      .op = &Def(CoreOp::kCompare),
                                      .attrs = AttrsOf(CoreOp::kCompare).Set("direction", int64_t{3}),
                                      .operands = {sum, limit}}));
  const auto guards = InferTypes(&graph);
  ASSERT_TRUE(guards.ok()) << guards.status();
  const auto radius = [&](float at) {
    return EvaluateBounded(graph, *guards, {LiteralOf<float>({0.1f, 0.2f, 0.3f}), Literal::Scalar(at)})
        .value()[0]
        .radius_at(0);
  };
  EXPECT_TRUE(std::isinf(radius(0.6f)));
  EXPECT_EQ(radius(0.7f), 0);
}

}  // namespace
}  // namespace tensord::property
