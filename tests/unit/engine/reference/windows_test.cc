// The meaning of Gather and Scatter, on small tensors worked out by hand.

#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/parser.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/reference/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/numbers/literal_of.h"

namespace tensord {
namespace {

using testing::ElementsAreArray;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kGreatest = std::numeric_limits<int64_t>::max();

void ExpectFloats(absl::string_view node, const std::vector<Literal>& arguments, const Shape& shape,
                  const std::vector<float>& values) {
  std::string text = "graph \"g\" {\n";
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::StrAppend(&text, "  %",
                    i == 0   ? "x"
                    : i == 1 ? "i"
                             : "u",
                    " = input : ", ToString(arguments[i].type()), "\n");
  }
  absl::StatusOr<Graph> graph =
      ParseGraph(absl::StrCat(text, "  %y = ", node, "\n  output \"y\" = %y\n}\n"), CoreRegistry());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto guards = InferTypes(&*graph);
  ASSERT_TRUE(guards.ok()) << guards.status();
  const auto results = EvaluateReference(*graph, *guards, arguments);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->front().shape(), shape);
  EXPECT_THAT(results->front().values<float>(), ElementsAreArray(values));
}

TEST(GatherMeaning, ElementsAndTheirBounds) {
  constexpr char kLookup[] =
      "gather(%x, %i) {collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [1]}";
  const Literal x = LiteralOf<float>({10, 20, 30, 40, 50}, {5});
  ExpectFloats(kLookup, {x, LiteralOf<int64_t>({0, 2, 4}, {3, 1})}, {3}, {10, 30, 50});
  ExpectFloats(kLookup, {x, LiteralOf<int64_t>({4, 1, 0}, {3})}, {3}, {50, 20, 10});
  ExpectFloats(kLookup, {x, LiteralOf<int64_t>({-1, 5, kLeast, kGreatest}, {4})}, {4}, {10, 50, 10, 50});
}

TEST(GatherMeaning, WindowsAreMovedIntoBounds) {
  ExpectFloats("gather(%x, %i) {offset_dims = [0], start_index_map = [0], index_vector_dim = 1, slice_sizes = [3]}",
               {LiteralOf<float>({1, 2, 3, 4, 5}, {5}), LiteralOf<int64_t>({-7, 1, 4}, {3})}, {3, 3},
               {1, 2, 3, 2, 3, 4, 3, 4, 5});
}

TEST(GatherMeaning, BatchingAxesFollowTheIndices) {
  // y[q, b] = x[b, i[q, b]].
  ExpectFloats(
      "gather(%x, %i) {collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [1], "
      "start_index_map = [1], index_vector_dim = 2, slice_sizes = [1, 1]}",
      {LiteralOf<float>({1, 2, 3, 4, 5, 6}, {2, 3}), LiteralOf<int64_t>({0, 2, 1, 0}, {2, 2})}, {2, 2}, {1, 5, 4, 2});
}

constexpr char kElements[] =
    "scatter(%x, %i, %u) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = ";

TEST(ScatterMeaning, UpdatesOutOfBoundsAreSkipped) {
  const Literal zeros = LiteralOf<float>({0, 0, 0, 0}, {4});
  ExpectFloats(absl::StrCat(kElements, "1}"),
               {zeros, LiteralOf<int64_t>({-1, 2, 4}, {3}), LiteralOf<float>({5, 6, 7}, {3})}, {4}, {0, 0, 6, 0});
  ExpectFloats(absl::StrCat(kElements, "1}"),
               {zeros, LiteralOf<int64_t>({kLeast, kGreatest, 3}, {3}), LiteralOf<float>({5, 6, 7}, {3})}, {4},
               {0, 0, 0, 7});
}

TEST(ScatterMeaning, AWindowThatDoesNotFitIsSkippedWhole) {
  ExpectFloats(
      "scatter(%x, %i, %u) {update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1}",
      {LiteralOf<float>({0, 0, 0, 0}, {4}), LiteralOf<int64_t>({2, 3, -1}, {3}),
       LiteralOf<float>({1, 2, 3, 4, 5, 6}, {2, 3})},
      {4}, {0, 0, 1, 2});
}

TEST(ScatterMeaning, TheLastOfEqualIndicesWinsInIndexOrder) {
  const std::vector<Literal> arguments = {LiteralOf<float>({0}, {1}), LiteralOf<int64_t>({0, 0, 0, 0, 0, 9}, {2, 3}),
                                          LiteralOf<float>({1, 2, 3, 4, 5, 6}, {2, 3})};
  ExpectFloats(absl::StrCat(kElements, "2, combiner = set}"), arguments, {1}, {5});
  ExpectFloats(absl::StrCat(kElements, "2, combiner = set, index_order = [1, 0]}"), arguments, {1}, {4});
}

TEST(ScatterMeaning, Combiners) {
  const std::vector<Literal> arguments = {LiteralOf<float>({3, 4}, {2}), LiteralOf<int64_t>({0, 1, 0}, {3}),
                                          LiteralOf<float>({5, 2, -1}, {3})};
  ExpectFloats(absl::StrCat(kElements, "1, combiner = add}"), arguments, {2}, {7, 6});
  ExpectFloats(absl::StrCat(kElements, "1, combiner = multiply}"), arguments, {2}, {-15, 8});
  ExpectFloats(absl::StrCat(kElements, "1, combiner = minimum}"), arguments, {2}, {-1, 2});
  ExpectFloats(absl::StrCat(kElements, "1, combiner = maximum}"), arguments, {2}, {5, 4});
}

}  // namespace
}  // namespace tensord
