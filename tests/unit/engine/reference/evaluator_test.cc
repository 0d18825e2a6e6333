#include "engine/reference/evaluator.h"

#include <vector>

#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_of.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::vector<Literal>> Evaluate(absl::string_view text, const std::vector<Literal>& arguments) {
  absl::StatusOr<Graph> graph = ParseGraph(text, CoreRegistry());
  if (!graph.ok()) return graph.status();
  const auto guards = InferTypes(&*graph);
  if (!guards.ok()) return guards.status();
  return EvaluateReference(*graph, *guards, arguments);
}

constexpr absl::string_view kSum = R"(graph "g" {
  %x = input : f32[n,2]
  %z = input : f32[n,m]
  %sum = add(%x, %z)
  output "sum" = %sum
  output "x" = %x
})";

TEST(EvaluateReference, GivesOutputsInOrder) {
  const auto results = Evaluate(kSum, {LiteralOf<float>({1, 2}, {1, 2}), LiteralOf<float>({10, 20}, {1, 2})});
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(11, 22));
  EXPECT_THAT((*results)[1].values<float>(), ElementsAre(1, 2));
}

TEST(EvaluateReference, ReadsAndWritesColumnMajor) {
  const auto results = Evaluate(R"(graph "g" {
    %x = input : f32[2,3]
    %i = iota() {type = f32[2,3], dimension = 1}
    %y = add(%x, %i)
    %t = transpose(%y) {permutation = [1, 0]}
    %r = reshape(%x) {shape = [6], order = row_major}
    %w = constant() {value = f32[3] [1, 10, 100]}
    %d = dot_general(%x, %w) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}
    output "t" = %t
    output "r" = %r
    output "d" = %d
  })",
                                {LiteralOf<float>({1, 2, 3, 4, 5, 6}, {2, 3})});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].values<float>(), ElementsAre(1, 4, 7, 2, 5, 8));
  EXPECT_THAT((*results)[1].values<float>(), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_THAT((*results)[2].values<float>(), ElementsAre(531, 642));
}

TEST(EvaluateReference, RefusesAsARunDoes) {
  struct Case {
    std::vector<Literal> arguments;
    std::string reason, part;
  };
  const Literal two = LiteralOf<float>({1, 2}, {1, 2});
  const std::vector<Case> cases = {
      {{}, "ARGUMENT_COUNT", "2 inputs"},
      {{two}, "ARGUMENT_COUNT", "1 arguments"},
      {{two, two, two}, "ARGUMENT_COUNT", "3 arguments"},
      {{LiteralOf<float>({1, 2}, {2}), two}, "ARGUMENT_MISMATCH", "rank"},
      {{LiteralOf<float>({1, 2, 3}, {1, 3}), two}, "ARGUMENT_MISMATCH", "size of axis 1"},
      {{two, Literal::Scalar(int32_t{1})}, "ARGUMENT_MISMATCH", "argument 1 has another dtype"},
      {{two, LiteralOf<float>({1, 2}, {2, 1})}, "SYMBOL_CONFLICT", "\"n\""},
      {{two, LiteralOf<float>({1}, {1, 1})}, "SHAPE_MISMATCH", "(node \"sum\", op add)"},
  };
  for (const Case& c : cases) {
    const auto results = Evaluate(kSum, c.arguments);
    ASSERT_FALSE(results.ok()) << c.reason;
    EXPECT_EQ(DetailOf(results.status())->reason, c.reason) << results.status();
    EXPECT_THAT(std::string(results.status().message()), HasSubstr(c.part));
  }
}

TEST(EvaluateReference, ASizeThatTheRunMakesNegativeNamesTheNode) {
  constexpr absl::string_view kText = R"(graph "g" {
    %x = input : f32[n]
    %one = constant() {value = f32[] [1]}
    %b = broadcast_in_dim(%one) {shape = [n - 3]}
    output "b" = %b
  })";
  const auto empty = Evaluate(kText, {LiteralOf<float>({1, 2, 3}, {3})});
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ((*empty)[0].num_elements(), 0);
  const auto negative = Evaluate(kText, {LiteralOf<float>({1, 2}, {2})});
  ASSERT_FALSE(negative.ok());
  EXPECT_EQ(DetailOf(negative.status())->node, "b") << negative.status();
}

TEST(EvaluateNode, RefusesResultsThatCannotBe) {
  const OpDef& op = Def(CoreOp::kIota);
  Attributes attrs(op.attrs);
  attrs.Set("dimension", int64_t{0});
  const auto huge = EvaluateNode(op, attrs, {}, {.dtype = DType::kF64, .shape = {int64_t{1} << 62}});
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(DetailOf(huge.status())->reason, "SHAPE_OVERFLOW");
}

}  // namespace
}  // namespace tensord
