// The expansion of an einsum gives the same as its reference, which loops over all labels.

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/refusal.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/passes/lowering/expand_families.h"
#include "engine/reference/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Expanded(absl::string_view text) {
  Graph graph = TypedGraph(text);
  const absl::Status expanded = ExpandFamilies(&graph);
  EXPECT_TRUE(expanded.ok()) << expanded;
  return PrintGraph(graph);
}

class RandomEinsum {
 public:
  RandomEinsum(DType dtype, std::mt19937_64* random) : dtype_(dtype), random_(*random) {}

  // The text of a graph of one einsum, and arguments for it.
  std::string Text() {
    const bool is_half = dtype_ == DType::kF16 || dtype_ == DType::kBF16;  // few terms, so that sums are exact
    const int labels = Pick(1, is_half ? 3 : 6), operands = Pick(1, is_half ? 2 : 6);
    for (int i = 0; i < labels; ++i) sizes_.push_back(Pick(0, 30) == 0 ? 0 : Pick(1, is_half ? 2 : 3));
    const bool has_ellipsis = !is_half && Pick(0, 3) == 0;
    const int batch_rank = Pick(0, 2);
    std::vector<int64_t> batch;
    for (int i = 0; i < batch_rank; ++i) batch.push_back(Pick(1, 3));
    std::string inputs, equation, used;
    std::vector<std::string> names;
    bool any_ellipsis = false;
    for (int i = 0; i < operands; ++i) {
      const bool with_ellipsis = has_ellipsis && Pick(0, 1) == 0;
      any_ellipsis = any_ellipsis || with_ellipsis;
      absl::StrAppend(&inputs, "  %x", i, " = input : ", Operand(with_ellipsis, batch, labels, &equation, &used), "\n");
      names.push_back(absl::StrCat("%x", i));
      if (i + 1 < operands) equation += ",";
    }
    equation += "->" + Output(any_ellipsis, used);
    return absl::StrCat("graph \"g\" {\n", inputs, "  %y = tensord.einsum.v1.Einsum(", absl::StrJoin(names, ", "),
                        ") {equation = \"", equation, "\"", Order(operands), "}\n  output \"y\" = %y\n}\n");
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  std::string Operand(bool with_ellipsis, const std::vector<int64_t>& batch, int labels, std::string* equation,
                      std::string* used) {
    std::vector<int64_t> shape;
    const int rank = Pick(0, 4), at = Pick(0, rank);
    for (int axis = 0; axis <= rank; ++axis) {
      if (with_ellipsis && axis == at) {
        *equation += "...";
        for (int k = Pick(0, static_cast<int>(batch.size())); k-- > 0;) {
          shape.push_back(Pick(0, 2) == 0 ? 1 : batch[static_cast<size_t>(k)]);
        }
      }
      if (axis == rank) break;
      const int label = Pick(0, labels - 1);
      equation->push_back(static_cast<char>('a' + label));
      used->push_back(static_cast<char>('a' + label));
      shape.push_back(sizes_[static_cast<size_t>(label)]);
    }
    return absl::StrCat(Name(dtype_), "[", absl::StrJoin(shape, ","), "]");
  }

  std::string Output(bool with_ellipsis, const std::string& used) {
    std::string output;
    for (int i = used.empty() ? 0 : Pick(0, 3); i-- > 0;) {
      output.push_back(used[static_cast<size_t>(Pick(0, static_cast<int>(used.size()) - 1))]);
    }
    if (with_ellipsis) output.insert(static_cast<size_t>(Pick(0, static_cast<int>(output.size()))), "...");
    return output;
  }

  // An optimizer, a path of steps of several operands, or nothing.
  std::string Order(int operands) {
    if (Pick(0, 1) == 0) {
      constexpr absl::string_view kOptimizers[] = {"greedy", "optimal", "left_to_right"};
      return Pick(0, 1) == 0 ? "" : absl::StrCat(", optimizer = ", kOptimizers[Pick(0, 2)]);
    }
    std::vector<std::string> steps;
    for (int live = operands; live > 1;) {
      std::vector<int> positions(static_cast<size_t>(live));
      for (int i = 0; i < live; ++i) positions[static_cast<size_t>(i)] = i;
      std::shuffle(positions.begin(), positions.end(), random_);
      positions.resize(static_cast<size_t>(Pick(1, std::min(live, 3))));
      live -= static_cast<int>(positions.size()) - 1;
      steps.push_back(absl::StrCat("[", absl::StrJoin(positions, ", "), "]"));
    }
    return steps.empty() ? "" : absl::StrCat(", path = [", absl::StrJoin(steps, ", "), "]");
  }

  const DType dtype_;
  std::mt19937_64& random_;
  std::vector<int64_t> sizes_;
};

TEST(EinsumExpansion, GivesWhatTheReferenceGives) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 1'500; ++i) {
    const DType dtype = kAllDTypes[static_cast<size_t>(i) % kNumDTypes];
    const std::string text = RandomEinsum(dtype, &random).Text();
    SCOPED_TRACE(text);
    Graph graph = TypedGraph(text);
    ASSERT_FALSE(testing::Test::HasFailure());
    std::vector<Literal> arguments;
    for (const GraphInput& input : graph.inputs()) {
      arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kIntegers, &random));
    }
    const absl::StatusOr<std::vector<Literal>> want = EvaluateReference(graph, {}, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    const absl::Status expanded = ExpandFamilies(&graph);
    ASSERT_TRUE(expanded.ok()) << expanded;
    const absl::StatusOr<std::vector<Literal>> got = EvaluateReference(graph, {}, arguments);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(Difference((*got)[0], (*want)[0], {}), "") << PrintGraph(graph);
  }
}

TEST(EinsumExpansion, OfAProductOfMatricesIsOneDot) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[n,3]
    %b = input : f32[3,m]
    %y = tensord.einsum.v1.Einsum(%a, %b) {equation = "ij,jk->ik"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("dot_general"));
  EXPECT_THAT(text, Not(HasSubstr("transpose")));
  EXPECT_THAT(text, HasSubstr("f32[n,m]"));
}

TEST(EinsumExpansion, PutsTheSideFirstThatTheOutputHasFirst) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[2,3,5]
    %b = input : f32[3,4,5]
    %y = tensord.einsum.v1.Einsum(%a, %b) {equation = "ijb,jkb->kib"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("dot_general(%b, %a)"));
  EXPECT_THAT(text, Not(HasSubstr("transpose")));
}

// So that its matrices lie one after the other there.
TEST(EinsumExpansion, PutsTheSideLastThatTheNextStepHasAsBatch) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[100,5]
    %b = input : f32[5,4]
    %c = input : f32[4,100,6]
    %y = tensord.einsum.v1.Einsum(%a, %b, %c) {equation = "(bi,ik),kbl->lb"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("dot_general(%b, %a)"));
  EXPECT_THAT(text, HasSubstr("f32[4,100]"));
  EXPECT_THAT(text, Not(HasSubstr("transpose")));
}

TEST(EinsumExpansion, PutsTheLargerSideFirstWhereTheNextStepHasNoBatch) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f32[100,5]
    %b = input : f32[5,4]
    %c = input : f32[4,6]
    %y = tensord.einsum.v1.Einsum(%a, %b, %c) {equation = "(bi,ik),kl->bl"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("dot_general(%a, %b)"));
  EXPECT_THAT(text, HasSubstr("f32[100,4]"));
}

TEST(EinsumExpansion, WithoutSumsIsAProduct) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : f64[n,3]
    %b = input : f64[m,n]
    %y = tensord.einsum.v1.Einsum(%a, %b) {equation = "ij,ki->kij"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("multiply"));
  EXPECT_THAT(text, HasSubstr("broadcast_in_dim"));
  EXPECT_THAT(text, Not(HasSubstr("dot_general")));
}

TEST(EinsumExpansion, OfOneOperandAsItIsIsTheOperand) {
  const std::string text = Expanded(R"(graph "g" {
    %a = input : i32[n,3]
    %y = tensord.einsum.v1.Einsum(%a) {equation = "ij->ij"}
    output "y" = %y
  })");
  EXPECT_THAT(text, HasSubstr("output \"y\" = %a"));
}

// An einsum of operands of I32, "n,2;m", in which n, m and k are symbols.
std::string EinsumText(absl::string_view equation, const std::vector<std::string>& shapes) {
  std::string inputs, names;
  for (size_t i = 0; i < shapes.size(); ++i) {
    absl::StrAppend(&inputs, "  %x", i, " = input : i32[", shapes[i], "]\n");
    absl::StrAppend(&names, i == 0 ? "" : ", ", "%x", i);
  }
  return absl::StrCat("graph \"g\" {\n", inputs, "  %y = tensord.einsum.v1.Einsum(", names, ") {equation = \"",
                      equation, "\"}\n  output \"y\" = %y\n}\n");
}

std::vector<std::string> WithSizes(std::vector<std::string> shapes, int64_t n, int64_t m, int64_t k) {
  for (std::string& shape : shapes) {
    shape = absl::StrReplaceAll(shape, {{"n", absl::StrCat(n)}, {"m", absl::StrCat(m)}, {"k", absl::StrCat(k)}});
  }
  return shapes;
}

// Symbolic axes of an ellipsis may be as long as those of the others, or 1: what known sizes do.
TEST(EinsumExpansion, AnAxisOfAnEllipsisMayTurnOutToBeOne) {
  const struct {
    absl::string_view equation, shapes;
  } cases[] = {{"...,...->...", "3,n;n,2"},
               {"...i,...i->...", "n,2;m,2"},
               {"...i,...j->...ij", "m,2;n,3"},
               {"...,...->...", "n,m;k,n"},
               {"i...,i...->...", "2,n,k;2,m"},
               {"...,...,...,...->...", "n,m;m,2;2,n;k,n"},
               {"...i,j...,...->...ij", "n,2;3,k,m;1,m,k"},
               {"...,...i,->i...", "m;n,k;"}};
  std::mt19937_64 random(21);
  for (const auto& c : cases) {
    const std::vector<std::string> shapes = absl::StrSplit(c.shapes, ';');
    const std::string text = EinsumText(c.equation, shapes);
    SCOPED_TRACE(text);
    Graph graph = TypedGraph(text), expanded = graph;
    const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&graph);
    ASSERT_TRUE(guards.ok()) << guards.status();
    ASSERT_TRUE(ExpandFamilies(&expanded).ok());
    int run = 0, refused = 0;
    for (const int64_t n : {0, 1, 2, 3}) {
      for (const int64_t m : {0, 1, 2, 3}) {
        for (const int64_t k : {0, 1, 2, 3}) {
          Graph known = ParsedGraph(EinsumText(c.equation, WithSizes(shapes, n, m, k)));
          const absl::Status fits = InferTypes(&known).status();
          std::vector<Literal> arguments;
          for (const GraphInput& input : known.inputs()) {
            arguments.push_back(RandomLiteral(ToConcreteType(input.type), Values::kIntegers, &random));
          }
          const absl::StatusOr<std::vector<Literal>> symbolic = EvaluateReference(graph, *guards, arguments);
          if (!fits.ok()) {
            ++refused;
            EXPECT_EQ(DetailOf(fits).value_or(RefusalDetail{}).reason, "SHAPE_MISMATCH") << fits;
            EXPECT_EQ(DetailOf(symbolic.status()).value_or(RefusalDetail{}).reason, "SHAPE_MISMATCH")
                << n << " " << m << " " << k << ": " << symbolic.status();
            continue;
          }
          ++run;
          const absl::StatusOr<std::vector<Literal>> want = EvaluateReference(known, {}, arguments);
          const absl::StatusOr<std::vector<Literal>> got = EvaluateReference(expanded, {}, arguments);
          ASSERT_TRUE(want.ok() && symbolic.ok() && got.ok())
              << want.status() << " " << symbolic.status() << " " << got.status();
          EXPECT_EQ(Difference((*symbolic)[0], (*want)[0], {}), "") << n << " " << m << " " << k;
          EXPECT_EQ(Difference((*got)[0], (*want)[0], {}), "") << PrintGraph(expanded);
        }
      }
    }
    EXPECT_GT(run, 0);
    EXPECT_GT(refused, 0);
  }
}

// The size does not depend on the order of the operands, and says what two sizes make of which one may be 1.
TEST(EinsumExpansion, TheSizeOfAnEllipsisIsOfAllItsAxes) {
  for (const std::vector<std::string>& shapes : {std::vector<std::string>{"n", "m", "n", "1"}, {"m", "1", "n"}}) {
    const Graph graph =
        TypedGraph(EinsumText(shapes.size() == 4 ? "...,...,...,...->..." : "...,...,...->...", shapes));
    const absl::StatusOr<DimExpr> want = ParseDimExpr("max(m, n)*min(1, min(m, n))");
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(graph.type(graph.outputs()[0].value), (TensorType{.dtype = DType::kI32, .shape = {*want}}));
  }
}

TEST(EinsumExpansion, RefusedSizesOfAnEllipsisAreNamed) {
  Graph graph = TypedGraph(EinsumText("...i,...i->...", {"n,2", "m,2"}));
  const absl::StatusOr<std::vector<ShapeGuard>> guards = InferTypes(&graph);
  ASSERT_TRUE(guards.ok()) << guards.status();
  std::vector<Literal> arguments;
  for (const int64_t size : {3, 4}) {
    arguments.push_back(*Literal::Create({.dtype = DType::kI32, .shape = {size, 2}}));
  }
  const absl::Status refused = EvaluateReference(graph, *guards, arguments).status();
  EXPECT_EQ(DetailOf(refused).value_or(RefusalDetail{}).node, "y") << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("axis 0 of operand 0 is neither 1 nor the size of the ellipses' axis: n = 3"));
}

TEST(EinsumExpansion, RefusesAPathThatIsPastTheBound) {
  Graph graph = TypedGraph(R"(graph "g" {
    %a = input : f32[100]
    %b = input : f32[100]
    %c = input : f32[100,100]
    %y = tensord.einsum.v1.Einsum(%a, %b, %c)
        {equation = "i,j,ij->", path = [[0, 1], [0, 1]], largest_intermediate = 9999}
    output "y" = %y
  })");
  const absl::Status refused = ExpandFamilies(&graph);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  ASSERT_TRUE(DetailOf(refused).has_value());
  EXPECT_EQ(DetailOf(refused)->actual_value, 10'000);
  EXPECT_EQ(DetailOf(refused)->node, "y");
}

// The plan that a node tells is the one that it runs: the same graph comes of it as a path.
TEST(EinsumExpansion, TellsItsPlan) {
  const auto graph_with = [](absl::string_view order) {
    return TypedGraph(absl::StrCat(R"(graph "g" {
    %a = input : f32[2,9]
    %b = input : f32[9,3]
    %c = input : f32[3,8]
    %d = input : f32[8,4]
    %y = tensord.einsum.v1.Einsum(%a, %b, %c, %d) {equation = "ab,bc,cd,de->ae")",
                                   order, "}\n    output \"y\" = %y\n  }"));
  };
  for (const absl::string_view order : {"", ", optimizer = greedy", ", optimizer = optimal",
                                        ", optimizer = left_to_right", ", path = [[2, 3], [0, 1], [0, 1]]"}) {
    SCOPED_TRACE(order);
    Graph graph = graph_with(order);
    std::vector<ContractionPlan> plans;
    ASSERT_TRUE(ExpandFamilies(&graph, &plans).ok());
    ASSERT_EQ(plans.size(), 1u);
    EXPECT_EQ(plans[0].node, "y");
    EXPECT_EQ(plans[0].num_operands, 4);
    EXPECT_EQ(plans[0].optimizer, order.empty()                               ? "auto"
                                  : absl::StartsWith(order, ", optimizer = ") ? order.substr(14)
                                                                              : "path");
    std::vector<std::string> steps;
    for (const auto& [a, b] : PathByPositions(plans[0])) {
      EXPECT_LT(a, b);
      steps.push_back(absl::StrCat("[", a, ", ", b, "]"));
    }
    ASSERT_EQ(steps.size(), 3u);
    Graph again = graph_with(absl::StrCat(", path = [", absl::StrJoin(steps, ", "), "]"));
    std::vector<ContractionPlan> plans_again;
    ASSERT_TRUE(ExpandFamilies(&again, &plans_again).ok());
    EXPECT_EQ(PrintGraph(again), PrintGraph(graph));
    EXPECT_EQ(plans_again[0].flops, plans[0].flops);
    EXPECT_EQ(plans_again[0].largest, plans[0].largest);
  }
}

TEST(EinsumExpansion, PositionsOfAPathAreThoseOfWhatIsLeft) {
  const ContractionPlan plan = {.path = {{4, 1}, {0, 3}, {5, 6}, {2, 7}}, .num_operands = 5};
  const std::vector<std::pair<int64_t, int64_t>> positions = {{1, 4}, {0, 2}, {1, 2}, {0, 1}};
  EXPECT_EQ(PathByPositions(plan), positions);
}

}  // namespace
}  // namespace tensord
