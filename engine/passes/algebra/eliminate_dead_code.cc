#include "engine/passes/algebra/eliminate_dead_code.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/ir/liveness.h"

namespace tensord {

absl::StatusOr<bool> EliminateDeadCode(Graph* graph, const PassOptions&) {
  const std::vector<bool> live = LiveNodes(*graph);
  if (std::find(live.begin(), live.end(), false) == live.end()) return false;

  Graph kept = Graph::EmptyLike(*graph);
  std::vector<ValueId> to_kept(static_cast<size_t>(graph->num_values()));
  for (const GraphInput& input : graph->inputs()) {
    const ValueId value = kept.AddInput(input.name, input.type);
    to_kept[static_cast<size_t>(value.index)] = value;
  }
  std::vector<TensorType> types = graph->TakeTypes();
  std::vector<Node> nodes = graph->TakeNodes();
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    Node& node = nodes[i];
    const ValueId old_result = node.first_result;
    for (ValueId& operand : node.operands) operand = to_kept[static_cast<size_t>(operand.index)];
    const int32_t num_results = node.num_results;
    const ValueId result = kept.AddNode(std::move(node));
    for (int32_t r = 0; r < num_results; ++r) {
      to_kept[static_cast<size_t>(old_result.index + r)] = {result.index + r};
      kept.set_type({result.index + r}, std::move(types[static_cast<size_t>(old_result.index + r)]));
    }
  }
  for (const GraphOutput& output : graph->outputs()) {
    kept.AddOutput(output.name, to_kept[static_cast<size_t>(output.value.index)]);
  }
  *graph = std::move(kept);
  return true;
}

}  // namespace tensord
