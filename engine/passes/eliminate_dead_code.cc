#include "engine/passes/eliminate_dead_code.h"

#include <utility>
#include <vector>

namespace tensord {

absl::StatusOr<bool> EliminateDeadCode(Graph* graph, const PassOptions&) {
  std::vector<bool> live(graph->nodes().size());
  const auto mark = [&](ValueId value) {
    if (!graph->is_input(value)) live[static_cast<size_t>(graph->producer(value))] = true;
  };
  for (const GraphOutput& output : graph->outputs()) mark(output.value);
  size_t num_live = 0;
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    ++num_live;
    for (ValueId operand : graph->nodes()[i].operands) mark(operand);
  }
  if (num_live == live.size()) return false;

  Graph kept;
  kept.set_name(graph->name());
  kept.set_algebra(graph->algebra());
  std::vector<ValueId> to_kept(static_cast<size_t>(graph->num_values()));
  for (const GraphInput& input : graph->inputs()) {
    const ValueId value = kept.AddInput(input.name, input.type);
    to_kept[static_cast<size_t>(value.index)] = value;
  }
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    Node node = graph->nodes()[i];
    const ValueId old_result = node.first_result;
    for (ValueId& operand : node.operands) operand = to_kept[static_cast<size_t>(operand.index)];
    const int32_t num_results = node.num_results;
    const ValueId result = kept.AddNode(std::move(node));
    for (int32_t r = 0; r < num_results; ++r) {
      to_kept[static_cast<size_t>(old_result.index + r)] = {result.index + r};
      kept.set_type({result.index + r}, graph->type({old_result.index + r}));
    }
  }
  for (const GraphOutput& output : graph->outputs()) {
    kept.AddOutput(output.name, to_kept[static_cast<size_t>(output.value.index)]);
  }
  *graph = std::move(kept);
  return true;
}

}  // namespace tensord
