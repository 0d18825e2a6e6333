// Graphs in other algebras, in their standard form, against values that were written down by hand.

#include "engine/algebra/standard_form.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/algebra/vocabulary.h"
#include "engine/base/status_macros.h"
#include "engine/passes/lowering/expand_families.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

template <typename T>
Literal Of(Shape shape, const std::vector<T>& values) {
  Literal literal = *Literal::Create({.dtype = kDTypeOf<T>, .shape = std::move(shape)});
  std::copy(values.begin(), values.end(), literal.mutable_values<T>().begin());
  return literal;
}

// Returns the first result of the graph of one node.
absl::StatusOr<Literal> ResultOf(const std::string& algebra, const std::string& inputs, const std::string& node,
                                 const std::vector<Literal>& arguments) {
  Graph graph = TypedGraph(
      absl::StrCat("graph \"g\" algebra ", algebra, " {\n", inputs, "\n  %y = ", node, "\n  output \"y\" = %y\n}"));
  RETURN_IF_ERROR(CheckVocabulary(graph));
  RETURN_IF_ERROR(ExpandFamilies(&graph));
  RETURN_IF_ERROR(WriteInStandardForm(&graph));
  EXPECT_EQ(graph.algebra(), Algebra::kStandard);
  ASSIGN_OR_RETURN(const std::vector<ShapeGuard> guards, InferTypes(&graph));
  ASSIGN_OR_RETURN(std::vector<Literal> results, EvaluateReference(graph, guards, arguments));
  return std::move(results[0]);
}

template <typename T>
void ExpectValues(const absl::StatusOr<Literal>& got, const std::vector<T>& want) {
  ASSERT_TRUE(got.ok()) << got.status();
  const absl::Span<const T> values = got->values<T>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(values[i])) << i;
        continue;
      }
    }
    EXPECT_EQ(values[i], want[i]) << i;
  }
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min(), kMax = std::numeric_limits<int32_t>::max();
constexpr char kTwoFloats[] = "%a = input : f32[n]\n%b = input : f32[n]";
constexpr char kTwoIntegers[] = "%a = input : i32[n]\n%b = input : i32[n]";

TEST(StandardForm, SumsAreExtremesAndNaNWins) {
  const std::vector<Literal> arguments = {Of<float>({4}, {1, -kInf, kNaN, 2}), Of<float>({4}, {-3, -kInf, 5, kNaN})};
  ExpectValues<float>(ResultOf("max_plus", kTwoFloats, "add(%a, %b)", arguments), {1, -kInf, kNaN, kNaN});
  ExpectValues<float>(ResultOf("min_plus", kTwoFloats, "add(%a, %b)", arguments), {-3, -kInf, kNaN, kNaN});
}

TEST(StandardForm, ProductsOfFloatsAreIeee) {
  const std::vector<Literal> arguments = {Of<float>({4}, {1, -kInf, -kInf, 3e38f}),
                                          Of<float>({4}, {-3, 7, kInf, 3e38f})};
  ExpectValues<float>(ResultOf("max_plus", kTwoFloats, "multiply(%a, %b)", arguments), {-2, -kInf, kNaN, kInf});
  ExpectValues<float>(
      ResultOf("max_times", kTwoFloats, "multiply(%a, %b)", {Of<float>({3}, {0, 2, 0}), Of<float>({3}, {5, 4, kInf})}),
      {0, 8, kNaN});
}

TEST(StandardForm, IntegersSaturateAndTheZeroAbsorbs) {
  const std::vector<Literal> arguments = {Of<int32_t>({7}, {kMin, -1, kMax, kMin + 1, kMax - 1, 5, kMax}),
                                          Of<int32_t>({7}, {-1, kMin, 1, -2, 5, -7, kMin})};
  ExpectValues<int32_t>(ResultOf("max_plus", kTwoIntegers, "multiply(%a, %b)", arguments),
                        {kMin, kMin, kMax, kMin, kMax, -2, kMin});
  ExpectValues<int32_t>(ResultOf("min_plus", kTwoIntegers, "multiply(%a, %b)", arguments),
                        {kMin, kMin, kMax, kMin, kMax, -2, kMax});
}

TEST(StandardForm, SumsOverNothingAreTheZero) {
  const auto sum = [](const char* algebra, const Literal& argument, const char* type) {
    return ResultOf(algebra, absl::StrCat("%a = input : ", type), "reduce(%a) {kind = sum, dimensions = [0]}",
                    {argument});
  };
  ExpectValues<float>(sum("max_plus", Of<float>({0}, {}), "f32[n]"), {-kInf});
  ExpectValues<float>(sum("min_plus", Of<float>({0}, {}), "f32[0]"), {kInf});
  ExpectValues<float>(sum("max_times", Of<float>({0}, {}), "f32[n]"), {0});
  ExpectValues<float>(sum("max_times", Of<float>({2}, {kNaN, 1}), "f32[n]"), {kNaN});
  ExpectValues<int32_t>(sum("max_times", Of<int32_t>({0}, {}), "i32[0]"), {0});
  ExpectValues<int32_t>(sum("min_plus", Of<int32_t>({0}, {}), "i32[n]"), {kMax});
}

TEST(StandardForm, ContractionsAreOfTheAlgebra) {
  const std::string inputs = "%a = input : f32[2,k]\n%b = input : f32[k,2]";
  const std::string dot = "dot_general(%a, %b) {lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]}";
  // Columns first: a = [[1, 2], [0, -inf]].
  const std::vector<Literal> arguments = {Of<float>({2, 2}, {1, 0, 2, -kInf}), Of<float>({2, 2}, {10, 20, -1, 3})};
  ExpectValues<float>(ResultOf("max_plus", inputs, dot, arguments), {22, 10, 5, -1});
  ExpectValues<float>(ResultOf("max_plus", inputs, dot, {Of<float>({2, 0}, {}), Of<float>({0, 2}, {})}),
                      {-kInf, -kInf, -kInf, -kInf});
  ExpectValues<float>(ResultOf("max_times", inputs, dot, {Of<float>({2, 0}, {}), Of<float>({0, 2}, {})}), {0, 0, 0, 0});
}

TEST(StandardForm, FillsWithTheZero) {
  const std::string matrix = "%a = input : f32[n,n]";
  const Literal argument = Of<float>({2, 2}, {1, 2, 3, kNaN});
  ExpectValues<float>(ResultOf("max_plus", matrix, "tril(%a)", {argument}), {1, 2, -kInf, kNaN});
  ExpectValues<float>(ResultOf("min_plus", matrix, "triu(%a) {diagonal = 1}", {argument}), {kInf, kInf, 3, kInf});
  ExpectValues<float>(ResultOf("max_times", matrix, "tril(%a)", {argument}), {1, 2, 0, kNaN});
  ExpectValues<int32_t>(ResultOf("max_plus", "%a = input : i32[n]", "embed_diag(%a) {axis_a = 0, axis_b = 1}",
                                 {Of<int32_t>({2}, {7, 8})}),
                        {7, kMin, kMin, 8});
  ExpectValues<float>(
      ResultOf("min_plus", "%a = input : f32[n]\n%b = input : f32[m]", "pad_to_match(%a, %b) {dimension = 0}",
               {Of<float>({1}, {4}), Of<float>({3}, {0, 0, 0})}),
      {4, kInf, kInf});
  ExpectValues<float>(ResultOf("max_plus", "%a = input : f32[n]", "tensord.einsum.v1.Einsum(%a) {equation = \"i->ii\"}",
                               {Of<float>({2}, {5, 6})}),
                      {5, -kInf, -kInf, 6});
}

TEST(StandardForm, ScatterRelaxes) {
  const std::string inputs = "%a = input : f32[3]\n%i = input : i32[e,1]\n%u = input : f32[e]";
  const std::string scatter =
      "scatter(%a, %i, %u) {inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1, "
      "combiner = ";
  const std::vector<Literal> arguments = {Of<float>({3}, {kInf, 5, 1}), Of<int32_t>({3, 1}, {0, 1, 0}),
                                          Of<float>({3}, {7, 9, 6})};
  ExpectValues<float>(ResultOf("min_plus", inputs, scatter + "add}", arguments), {6, 5, 1});
  ExpectValues<float>(ResultOf("max_plus", inputs, scatter + "add}", arguments), {kInf, 9, 1});
  ExpectValues<float>(ResultOf("min_plus", inputs, scatter + "set}", arguments), {6, 9, 1});
}

// A label counts once, whatever its size.
TEST(StandardForm, EinsumSumsInTheAlgebra) {
  const std::string inputs = "%a = input : f32[2,3]\n%b = input : f32[3]\n%c = input : f32[2]";
  const std::vector<Literal> arguments = {Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}), Of<float>({3}, {10, 0, -10}),
                                          Of<float>({2}, {0.5f, 100})};
  ExpectValues<float>(
      ResultOf("max_plus", inputs, "tensord.einsum.v1.Einsum(%a, %b, %c) {equation = \"ij,j,k->i\"}", arguments),
      {111, 112});
  ExpectValues<float>(
      ResultOf("min_plus", inputs, "tensord.einsum.v1.Einsum(%a, %b, %c) {equation = \"ij,j,i->\"}", arguments),
      {-4.5f});
}

}  // namespace
}  // namespace tensord
