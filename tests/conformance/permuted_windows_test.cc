// Gather and Scatter on operands stored in any order: the same results, and nothing transposed but what has to be.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/cpu/cpu_backend.h"
#include "engine/ir/printer.h"
#include "engine/ir/verifier.h"
#include "engine/ops/axis_order.h"
#include "engine/reference/evaluator.h"
#include "tests/testlib/graphs/node_case.h"
#include "tests/testlib/graphs/window_cases.h"
#include "tests/testlib/numbers/literal_compare.h"
#include "tests/testlib/numbers/random_literal.h"
#include "tests/testlib/runs/compiled_run.h"

namespace tensord {
namespace {

std::vector<NodeCase> CasesToPermute() {
  std::vector<NodeCase> cases = GatherCases();
  for (NodeCase& node_case : ScatterCases()) cases.push_back(std::move(node_case));
  const auto other = [](const NodeCase& c) {
    return c.operands[0].dtype != DType::kF32 && c.operands[0].dtype != DType::kI64;
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), other), cases.end());
  return cases;
}

// The node on transposes of the inputs: what arrives is stored in another order.
Graph OnTransposed(const NodeCase& node_case, const std::vector<AxisOrder>& orders) {
  Graph graph;
  std::vector<ValueId> stored;
  for (size_t i = 0; i < orders.size(); ++i) {
    ConcreteType type = node_case.operands[i];
    type.shape = ToStored(type.shape, orders[i]);
    stored.push_back(graph.AddInput(absl::StrCat("x", i), ToTensorType(type)));
  }
  Node node{.name = "n", .op = node_case.op, .attrs = node_case.attrs};
  for (size_t i = 0; i < orders.size(); ++i) {
    const OpDef& transpose = Def(CoreOp::kTranspose);
    Node transposed{.name = absl::StrCat("t", i), .op = &transpose, .attrs = Attributes(transpose.attrs)};
    transposed.attrs.Set("permutation", std::vector<int64_t>(orders[i].begin(), orders[i].end()));
    transposed.operands = {stored[i]};
    node.operands.push_back(graph.AddNode(std::move(transposed)));
  }
  graph.AddOutput("y", graph.AddNode(std::move(node)));
  return graph;
}

TEST(PermutedWindows, AgreeWithTheReferenceInEveryOrder) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 2});
  std::mt19937_64 random(11);
  for (const NodeCase& node_case : CasesToPermute()) {
    std::vector<AxisOrder> orders;
    std::vector<Literal> arguments;
    for (const ConcreteType& type : node_case.operands) {
      orders.push_back(IdentityOrder(static_cast<int64_t>(type.shape.size())));
      std::shuffle(orders.back().begin(), orders.back().end(), random);
      ConcreteType stored = type;
      stored.shape = ToStored(stored.shape, orders.back());
      arguments.push_back(RandomLiteral(stored, Values::kIntegers, &random));
    }
    Graph graph = OnTransposed(node_case, orders);
    const auto guards = InferTypes(&graph);
    ASSERT_TRUE(guards.ok()) << node_case.name << guards.status();
    const auto want = EvaluateReference(graph, *guards, arguments);
    ASSERT_TRUE(want.ok()) << want.status();
    for (const bool row_major : {false, true}) {
      const auto got =
          CompileAndRun(OnTransposed(node_case, orders), {.backend = backend.get(), .row_major = row_major}, arguments);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(Difference((*got)[0], (*want)[0], {}), "") << PrintGraph(graph);
    }
  }
}

}  // namespace
}  // namespace tensord
