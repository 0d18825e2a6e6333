#include "engine/ir/liveness.h"

namespace tensord {

std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  const auto mark = [&](ValueId value) {
    if (!graph.is_input(value)) live[static_cast<size_t>(graph.producer(value))] = true;
  };
  for (const GraphOutput& output : graph.outputs()) mark(output.value);
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (ValueId operand : graph.nodes()[i].operands) mark(operand);
  }
  return live;
}

}  // namespace tensord
