#include "engine/passes/layout/reverse_wire_order.h"

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

Graph ReverseWireOrder(Graph graph) {
  Graph reversed = Graph::EmptyLike(graph);
  std::vector<ValueId> map(static_cast<size_t>(graph.num_values()));
  for (const GraphInput& input : graph.inputs()) {
    TensorType type = input.type;
    std::reverse(type.shape.begin(), type.shape.end());
    reversed.AddInput(input.name, std::move(type));
  }
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    map[i] = AppendReversal(&reversed, {static_cast<int32_t>(i)}, graph.inputs()[i].name);
  }
  std::vector<std::string> output_names;
  for (const GraphOutput& output : graph.outputs()) output_names.push_back(graph.NameOf(output.value));
  std::vector<TensorType> types = graph.TakeTypes();
  for (Node& node : graph.TakeNodes()) {
    for (ValueId& operand : node.operands) operand = map[static_cast<size_t>(operand.index)];
    const ValueId first = node.first_result;
    const int32_t num_results = node.num_results;
    const ValueId result = reversed.AddNode(std::move(node));
    for (int32_t r = 0; r < num_results; ++r) {
      const size_t old = static_cast<size_t>(first.index + r);
      map[old] = {result.index + r};
      reversed.set_type({result.index + r}, std::move(types[old]));
    }
  }
  for (size_t i = 0; i < output_names.size(); ++i) {
    const GraphOutput& output = graph.outputs()[i];
    const ValueId value = map[static_cast<size_t>(output.value.index)];
    reversed.AddOutput(output.name, AppendReversal(&reversed, value, output_names[i]));
  }
  return reversed;
}

}  // namespace tensord
