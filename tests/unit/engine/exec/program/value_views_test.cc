#include "engine/exec/program/value_views.h"

#include <random>
#include <string>
#include <vector>

#include "engine/exec/program/program_passes.h"
#include "engine/ir/verifier.h"
#include "engine/reference/evaluator.h"
#include "gtest/gtest.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/graphs/valid_graph.h"
#include "tests/testlib/numbers/random_literal.h"

namespace tensord {
namespace {

std::vector<std::optional<OperandView>> ViewsOf(Graph graph) {
  EXPECT_TRUE(InferTypes(&graph).ok());
  ExecProgram program = LowerToProgram(graph);
  MarkLastUses(&program);
  std::vector<ConcreteType> types;
  for (const TensorType& type : program.slot_types) types.push_back(ToConcreteType(type));
  return FindViews(program, types);
}

struct Case {
  std::string operand;
  std::string node;
  int64_t offset;  // -1: no view
};

TEST(ValueViews, AreWhatOneKnowsWithoutLookingAtTheElements) {
  const std::vector<Case> cases = {
      {"f32[4,6]", "reshape(%x) {shape = [24]}", 0},
      {"f32[4,6]", "reshape(%x) {shape = [24], order = row_major}", -1},
      {"f32[4,1,6]", "reshape(%x) {shape = [4, 6, 1], order = row_major}", 0},
      {"f32[4,6]", "transpose(%x) {permutation = [1, 0]}", -1},
      {"f32[4,1,6]", "transpose(%x) {permutation = [1, 0, 2]}", 0},
      {"f32[4,1,6]", "transpose(%x) {permutation = [2, 1, 0]}", -1},
      {"f32[0,3]", "transpose(%x) {permutation = [1, 0]}", 0},
      {"f32[4]", "broadcast_in_dim(%x) {shape = [1, 4, 1], broadcast_dimensions = [1]}", 0},
      {"f32[4]", "broadcast_in_dim(%x) {shape = [4, 2], broadcast_dimensions = [0]}", -1},
      {"f32[4,6]", "broadcast_in_dim(%x) {shape = [6, 4], broadcast_dimensions = [1, 0]}", -1},
      {"f32[1,6]", "broadcast_in_dim(%x) {shape = [6, 1], broadcast_dimensions = [1, 0]}", 0},
      {"f64[4,6]", "slice(%x) {start_indices = [0, 2], limit_indices = [4, 5]}", 64},
      {"f64[4,6]", "slice(%x) {start_indices = [1, 2], limit_indices = [3, 3]}", 72},
      {"f64[4,6]", "slice(%x) {start_indices = [1, 2], limit_indices = [3, 5]}", -1},
      {"f64[4,6]", "slice(%x) {start_indices = [0, 0], limit_indices = [4, 6], strides = [1, 2]}", -1},
      {"f64[4,6]", "slice(%x) {start_indices = [1, 0], limit_indices = [2, 2], strides = [7, 5]}", 8},
      {"f64[4,6]", "slice(%x) {start_indices = [3, 1], limit_indices = [4, 3]}", -1},
      {"f64[4,6]", "slice(%x) {start_indices = [4, 6], limit_indices = [4, 6]}", 0},
      {"f64[4,1,6]", "slice(%x) {start_indices = [0, 0, 5], limit_indices = [4, 1, 6]}", 160},
      {"f64[4]", "exp(%x)", -1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.node);
    const auto views = ViewsOf(
        ParsedGraph("graph \"g\" {\n%x = input : " + c.operand + "\n%y = " + c.node + "\noutput \"y\" = %y\n}\n"));
    ASSERT_EQ(views.size(), 1u);
    EXPECT_EQ(views[0].has_value() ? views[0]->offset_bytes : -1, c.offset);
  }
}

TEST(ValueViews, HoldWhatTheReferenceComputes) {
  std::mt19937_64 random(3);
  int seen = 0;
  for (int i = 0; i < 400; ++i) {
    const Graph graph = RandomValidGraph({.max_nodes = 12}, &random);
    for (const Node& node : graph.nodes()) {
      if (node.operands.empty()) continue;
      const ConcreteType operand = ToConcreteType(graph.type(node.operands[0])),
                         result = ToConcreteType(graph.type(node.first_result));
      const ExecInstruction instruction{.op = node.op, .attrs = node.attrs};
      const std::optional<OperandView> view = ViewOf(instruction, operand, result);
      if (!view.has_value()) continue;
      ++seen;
      const Literal literal = RandomLiteral(operand, Values::kIntegers, &random);
      const auto want = EvaluateNode(*node.op, node.attrs, {&literal}, result);
      ASSERT_TRUE(want.ok()) << want.status();
      ASSERT_LE(view->offset_bytes + result.num_bytes(), operand.num_bytes()) << node.op->name;
      EXPECT_EQ(want->bytes(), literal.bytes().substr(static_cast<size_t>(view->offset_bytes),
                                                      static_cast<size_t>(result.num_bytes())))
          << node.op->name;
    }
  }
  EXPECT_GT(seen, 200);
}

TEST(ValueViews, ASmallPartDoesNotKeepALargeTemporary) {
  const auto views = ViewsOf(ParsedGraph(R"(graph "g" {
    %x = input : f32[100,100]
    %a = exp(%x)
    %row = slice(%a) {start_indices = [0, 3], limit_indices = [100, 4]}
    %most = slice(%a) {start_indices = [0, 0], limit_indices = [100, 60]}
    %own = slice(%x) {start_indices = [0, 3], limit_indices = [100, 4]}
    %b = exp(%own)
    %used = slice(%a) {start_indices = [0, 5], limit_indices = [100, 6]}
    %c = add(%b, %used)
    %s = reduce(%a) {kind = sum, dimensions = [0, 1]}
    output "row" = %row
    output "most" = %most
    output "c" = %c
    output "s" = %s
  })"));
  const std::vector<bool> want = {false, false, true, true, false, true, false, false};
  ASSERT_EQ(views.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(views[i].has_value(), want[i]) << i;
}

}  // namespace
}  // namespace tensord
