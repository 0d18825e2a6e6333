#include "engine/passes/algebra/fold_constants.h"

#include "absl/strings/str_cat.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/core_ops.h"
#include "engine/passes/algebra/eliminate_dead_code.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"

namespace tensord {
namespace {

Literal Zeros(DType dtype, Shape shape) { return Literal::Create({dtype, std::move(shape)}).value(); }

// A graph of constants alone, and a chain of ops on them.
Graph Constants(std::vector<Literal> literals) {
  Graph graph;
  for (Literal& literal : literals) {
    Node node{.name = absl::StrCat("k", graph.nodes().size()),
              .op = &Def(CoreOp::kConstant),
              .attrs = Attributes(Def(CoreOp::kConstant).attrs),
              .operands = {},
              .first_result = {},
              .body = nullptr};
    node.attrs.Set("value", std::make_shared<const Literal>(std::move(literal)));
    graph.AddNode(std::move(node));
  }
  return graph;
}

ValueId Append(CoreOp op, std::initializer_list<ValueId> operands, Graph* graph) {
  return graph->AddNode({.name = absl::StrCat("n", graph->nodes().size()),
                         .op = &Def(op),
                         .attrs = Attributes(Def(op).attrs),
                         .operands = operands,
                         .first_result = {},
                         .body = nullptr});
}

bool Folds(Graph graph, ValueId result) {
  graph.AddOutput("y", result);
  EXPECT_TRUE(InferTypes(&graph).ok());
  const auto changed = FoldConstants(&graph, {});
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(VerifyTypes(graph).ok());
  return *changed;
}

TEST(FoldConstants, ResultsAreAtMost64KiB) {
  Graph fits = Constants({Zeros(DType::kF32, {16384})});
  EXPECT_TRUE(Folds(fits, Append(CoreOp::kNegate, {{0}}, &fits)));
  Graph exceeds = Constants({Zeros(DType::kF32, {16385})});
  EXPECT_FALSE(Folds(exceeds, Append(CoreOp::kNegate, {{0}}, &exceeds)));
}

TEST(FoldConstants, TheWorkOfAProductIsBounded) {
  for (const auto& [size, folds] : {std::pair<int64_t, bool>(32, true), {512, false}}) {
    Graph graph = Constants({Zeros(DType::kBool, {size, size})});
    const ValueId product = Append(CoreOp::kDotGeneral, {{0}, {0}}, &graph);
    Node dot = graph.TakeNodes().back();
    dot.attrs.Set("lhs_contracting_dimensions", std::vector<int64_t>{1});
    dot.attrs.Set("rhs_contracting_dimensions", std::vector<int64_t>{0});
    Graph whole = Constants({Zeros(DType::kBool, {size, size})});
    whole.AddNode(std::move(dot));
    EXPECT_EQ(Folds(whole, product), folds) << size;
  }
}

TEST(FoldConstants, TheWorkOfAGraphIsBounded) {
  Graph graph = Constants({Zeros(DType::kBool, {65536})});
  std::vector<ValueId> results;
  for (int i = 0; i < 100; ++i) results.push_back(Append(CoreOp::kNot, {{0}}, &graph));
  for (size_t i = 0; i < results.size(); ++i) graph.AddOutput(absl::StrCat("y", i), results[i]);
  ASSERT_TRUE(InferTypes(&graph).ok());
  ASSERT_TRUE(*FoldConstants(&graph, {}));
  int folded = 0;
  for (const Node& node : graph.nodes()) folded += Is(*node.op, CoreOp::kConstant);
  EXPECT_GT(folded, 10);
  EXPECT_LT(folded, 20);
}

TEST(FoldConstants, EmptyTensorsAndScalars) {
  Graph graph = TypedGraph(R"(graph "g" {
    %k = constant() {value = f32[0,3] []}
    %s = reduce(%k) {kind = sum, dimensions = [0]}
    %m = reduce(%k) {kind = max, dimensions = [0, 1]}
    %e = exp(%k)
    output "s" = %s
    output "m" = %m
    output "e" = %e
  })");
  ASSERT_TRUE(*FoldConstants(&graph, {}));
  ASSERT_TRUE(EliminateDeadCode(&graph, {}).ok());
  // The sums are larger than the nothing that they are sums of.
  EXPECT_EQ(PrintGraph(graph), R"(graph "g" {
  %k = constant() {value = f32[0,3] []} : f32[0,3]
  %s = reduce(%k) {kind = sum, dimensions = [0]} : f32[3]
  %m = reduce(%k) {kind = max, dimensions = [0, 1]} : f32[]
  %e = constant() {value = f32[0,3] []} : f32[0,3]
  output "s" = %s
  output "m" = %m
  output "e" = %e
}
)");
}

}  // namespace
}  // namespace tensord
