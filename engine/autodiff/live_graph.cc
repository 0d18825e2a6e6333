#include "engine/autodiff/live_graph.h"

#include <utility>
#include <vector>

namespace tensord {

Graph LiveGraph(Graph graph) {
  std::vector<bool> is_read(graph.nodes().size());
  const auto read = [&](ValueId value) {
    if (!graph.is_input(value)) is_read[static_cast<size_t>(graph.producer(value))] = true;
  };
  for (const GraphOutput& output : graph.outputs()) read(output.value);
  for (size_t i = is_read.size(); i-- > 0;) {
    if (!is_read[i]) continue;
    for (ValueId operand : graph.nodes()[i].operands) read(operand);
  }
  Graph live = Graph::EmptyLike(graph);
  std::vector<ValueId> values(static_cast<size_t>(graph.num_values()));
  for (const GraphInput& input : graph.inputs()) {
    const ValueId value = live.AddInput(input.name, input.type);
    values[static_cast<size_t>(value.index)] = value;
  }
  std::vector<Node> nodes = graph.TakeNodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_read[i]) continue;
    const ValueId old = nodes[i].first_result;
    const int32_t results = nodes[i].num_results;
    for (ValueId& operand : nodes[i].operands) operand = values[static_cast<size_t>(operand.index)];
    const ValueId first = live.AddNode(std::move(nodes[i]));
    for (int32_t r = 0; r < results; ++r) {
      values[static_cast<size_t>(old.index + r)] = {first.index + r};
      live.set_type({first.index + r}, graph.TakeType({old.index + r}));
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    live.AddOutput(output.name, values[static_cast<size_t>(output.value.index)]);
  }
  return live;
}

}  // namespace tensord
