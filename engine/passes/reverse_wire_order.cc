#include "engine/passes/reverse_wire_order.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ops/axis_order.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// Appends the transpose of a value to its reversed shape; a value of rank 0 or 1 is its own.
ValueId AppendReversal(Graph* graph, ValueId value, const std::string& name) {
  TensorType type = graph->type(value);
  if (type.rank() < 2) return value;
  const AxisOrder order = ReversedOrder(type.rank());
  Node node{.name = name, .op = &Def(CoreOp::kTranspose), .attrs = Attributes(Def(CoreOp::kTranspose).attrs)};
  node.attrs.Set("permutation", std::vector<int64_t>(order.begin(), order.end()));
  node.operands.push_back(value);
  std::reverse(type.shape.begin(), type.shape.end());
  const ValueId result = graph->AddNode(std::move(node));
  graph->set_type(result, std::move(type));
  return result;
}

}  // namespace

Graph ReverseWireOrder(const Graph& graph) {
  Graph reversed;
  reversed.set_name(graph.name());
  reversed.set_algebra(graph.algebra());
  std::vector<ValueId> map(static_cast<size_t>(graph.num_values()));
  for (const GraphInput& input : graph.inputs()) {
    TensorType type = input.type;
    std::reverse(type.shape.begin(), type.shape.end());
    reversed.AddInput(input.name, std::move(type));
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    map[i] = AppendReversal(&reversed, {static_cast<int32_t>(i)}, graph.inputs()[i].name);
  }
  for (const Node& original : graph.nodes()) {
    Node node = original;
    for (ValueId& operand : node.operands) operand = map[static_cast<size_t>(operand.index)];
    const ValueId result = reversed.AddNode(std::move(node));
    for (int32_t r = 0; r < original.num_results; ++r) {
      map[static_cast<size_t>(original.first_result.index + r)] = {result.index + r};
      reversed.set_type({result.index + r}, graph.type({original.first_result.index + r}));
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    const ValueId value = map[static_cast<size_t>(output.value.index)];
    reversed.AddOutput(output.name, AppendReversal(&reversed, value, graph.NameOf(output.value)));
  }
  return reversed;
}

}  // namespace tensord
