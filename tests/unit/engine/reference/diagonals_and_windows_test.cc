// The meaning of the diagonal, triangle, window and extent ops, on small tensors worked out by hand.

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_of.h"

namespace tensord {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();

// 1, 2, 3, … in storage order.
Literal Counting(Shape shape) {
  Literal literal = *Literal::Create({.dtype = DType::kF32, .shape = std::move(shape)});
  float next = 1;
  for (float& element : literal.mutable_values<float>()) element = next++;
  return literal;
}

// The one result of a node on the given inputs.
absl::StatusOr<Literal> Evaluate(absl::string_view inputs, absl::string_view node,
                                 const std::vector<Literal>& arguments) {
  absl::StatusOr<Graph> graph = ParseGraph(
      absl::StrCat("graph \"g\" {\n", inputs, "\n  %y = ", node, "\n  output \"y\" = %y\n}\n"), CoreRegistry());
  if (!graph.ok()) return graph.status();
  const auto guards = InferTypes(&*graph);
  if (!guards.ok()) return guards.status();
  absl::StatusOr<std::vector<Literal>> results = EvaluateReference(*graph, *guards, arguments);
  if (!results.ok()) return results.status();
  return results->front();
}

void ExpectFloats(const absl::StatusOr<Literal>& result, const Shape& shape, const std::vector<float>& values) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->shape(), shape);
  EXPECT_THAT(result->values<float>(), ElementsAreArray(values));
}

constexpr absl::string_view kMatrix = "  %x = input : f32[n,m]";

TEST(DiagonalMeaning, Extract) {
  ExpectFloats(Evaluate(kMatrix, "extract_diag(%x) {axis_b = 1}", {Counting({3, 3})}), {3}, {1, 5, 9});
  ExpectFloats(Evaluate(kMatrix, "extract_diag(%x) {axis_b = 1}", {Counting({0, 0})}), {0}, {});
  // Axis 2 stays, axis 0 goes: y[i, j] = x[j, i, j].
  ExpectFloats(
      Evaluate("  %x = input : f32[2,3,2]", "extract_diag(%x) {axis_a = 2, axis_b = 0}", {Counting({2, 3, 2})}), {3, 2},
      {1, 3, 5, 8, 10, 12});
}

TEST(DiagonalMeaning, ExtractNeedsOneSizeWhenItRuns) {
  const auto result = Evaluate(kMatrix, "extract_diag(%x) {axis_b = 1}", {Counting({2, 3})});
  EXPECT_EQ(DetailOf(result.status()).value().reason, "SHAPE_MISMATCH");
  EXPECT_THAT(result.status().message(), HasSubstr("n = 2 and m = 3"));
}

TEST(DiagonalMeaning, Embed) {
  ExpectFloats(Evaluate("  %x = input : f32[n]", "embed_diag(%x) {axis_b = 1}", {Counting({2})}), {2, 2}, {1, 0, 0, 2});
  ExpectFloats(Evaluate("  %x = input : f32[n]", "embed_diag(%x) {axis_b = 1}", {Counting({0})}), {0, 0}, {});
  // y[k, i, j] = x[i, j] where k == j.
  ExpectFloats(Evaluate(kMatrix, "embed_diag(%x) {axis_a = 1, axis_b = 0}", {Counting({1, 2})}), {2, 1, 2},
               {1, 0, 0, 2});
}

TEST(TriangleMeaning, Diagonals) {
  const auto tril = [](int64_t k) {
    return Evaluate(kMatrix, absl::StrCat("tril(%x) {diagonal = ", k, "}"), {Counting({2, 3})});
  };
  const auto triu = [](int64_t k) {
    return Evaluate(kMatrix, absl::StrCat("triu(%x) {diagonal = ", k, "}"), {Counting({2, 3})});
  };
  const std::vector<float> all = {1, 2, 3, 4, 5, 6}, none(6);
  ExpectFloats(tril(0), {2, 3}, {1, 2, 0, 4, 0, 0});
  ExpectFloats(triu(0), {2, 3}, {1, 0, 3, 4, 5, 6});
  ExpectFloats(tril(-1), {2, 3}, {0, 2, 0, 0, 0, 0});
  ExpectFloats(triu(2), {2, 3}, {0, 0, 0, 0, 5, 0});
  for (int64_t k : {int64_t{2}, int64_t{3}, kMax}) ExpectFloats(tril(k), {2, 3}, all);
  for (int64_t k : {int64_t{-2}, int64_t{-9}, kMin}) ExpectFloats(tril(k), {2, 3}, none);
  for (int64_t k : {int64_t{-1}, int64_t{-2}, kMin}) ExpectFloats(triu(k), {2, 3}, all);
  for (int64_t k : {int64_t{3}, int64_t{9}, kMax}) ExpectFloats(triu(k), {2, 3}, none);
}

TEST(TriangleMeaning, EveryMatrixOfABatch) {
  ExpectFloats(Evaluate("  %x = input : f32[2,2,b]", "triu(%x) {diagonal = 1}", {Counting({2, 2, 2})}), {2, 2, 2},
               {0, 0, 3, 0, 0, 0, 7, 0});
}

constexpr absl::string_view kWindow = "  %x = input : f32[n]\n  %s = input : i64[1]";

TEST(DynamicSliceMeaning, StartsAreMovedInside) {
  const std::pair<int64_t, std::vector<float>> cases[] = {{1, {2, 3}}, {3, {4, 5}},  {4, {4, 5}},   {kMax, {4, 5}},
                                                          {0, {1, 2}}, {-1, {1, 2}}, {kMin, {1, 2}}};
  for (const auto& [start, want] : cases) {
    ExpectFloats(
        Evaluate(kWindow, "dynamic_slice(%x, %s) {slice_sizes = [2]}", {Counting({5}), LiteralOf<int64_t>({start})}),
        {2}, want);
  }
  ExpectFloats(Evaluate("  %x = input : f32[4,4]\n  %s = input : i64[2]",
                        "dynamic_slice(%x, %s) {slice_sizes = [2, 2]}", {Counting({4, 4}), LiteralOf<int64_t>({2, 3})}),
               {2, 2}, {11, 12, 15, 16});
}

TEST(DynamicSliceMeaning, IsNotLongerThanItsOperandWhenItRuns) {
  const auto result =
      Evaluate(kWindow, "dynamic_slice(%x, %s) {slice_sizes = [2]}", {Counting({1}), LiteralOf<int64_t>({0})});
  EXPECT_EQ(DetailOf(result.status()).value().reason, "SHAPE_MISMATCH");
}

TEST(DynamicUpdateSliceMeaning, ReplacesAWindow) {
  const auto update = [](int64_t start) {
    return Evaluate("  %x = input : f32[n]\n  %u = input : f32[m]\n  %s = input : i64[1]",
                    "dynamic_update_slice(%x, %u, %s)", {Counting({4}), Counting({2}), LiteralOf<int64_t>({start})});
  };
  ExpectFloats(update(1), {4}, {1, 1, 2, 4});
  for (int64_t start : {int64_t{2}, int64_t{3}, kMax}) ExpectFloats(update(start), {4}, {1, 2, 1, 2});
  for (int64_t start : {int64_t{0}, int64_t{-1}, kMin}) ExpectFloats(update(start), {4}, {1, 2, 3, 4});
  const auto too_long =
      Evaluate("  %x = input : f32[n]\n  %u = input : f32[m]\n  %s = input : i64[1]",
               "dynamic_update_slice(%x, %u, %s)", {Counting({1}), Counting({2}), LiteralOf<int64_t>({0})});
  EXPECT_EQ(DetailOf(too_long.status()).value().reason, "SHAPE_MISMATCH");
}

TEST(ExtentMeaning, ShapeOf) {
  const auto size = Evaluate(kMatrix, "shape_of(%x) {dimension = 1}", {Counting({2, 7})});
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_THAT(size->values<int64_t>(), ElementsAre(7));
  EXPECT_TRUE(size->shape().empty());
}

TEST(ExtentMeaning, PadToMatch) {
  constexpr absl::string_view kInputs = "  %x = input : f32[n,2]\n  %r = input : f32[m]";
  ExpectFloats(Evaluate(kInputs, "pad_to_match(%x, %r)", {Counting({2, 2}), Counting({3})}), {3, 2},
               {1, 2, 0, 3, 4, 0});
  ExpectFloats(Evaluate(kInputs, "pad_to_match(%x, %r)", {Counting({2, 2}), Counting({1})}), {2, 2}, {1, 2, 3, 4});
  ExpectFloats(Evaluate(kInputs, "pad_to_match(%x, %r)", {Counting({0, 2}), Counting({1})}), {1, 2}, {0, 0});
}

}  // namespace
}  // namespace tensord
