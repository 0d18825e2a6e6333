#include "engine/passes/algebra/repeat_converts.h"

#include <optional>
#include <utility>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

const Node* WideningConvert(ValueId value, GraphRewriter& graph) {
  const Node* const convert = graph.producer_if(value, CoreOp::kConvert);
  if (convert == nullptr || graph.type(value).rank() == 0) return nullptr;
  const DType from = graph.type(convert->operands[0]).dtype;
  return SizeOf(graph.type(value).dtype) > SizeOf(from) ? convert : nullptr;
}

std::optional<ValueId> Rewrite(const Node& node, GraphRewriter& graph) {
  if (!Is(*node.op, CoreOp::kSlice)) return std::nullopt;
  const Node* const found = WideningConvert(node.operands[0], graph);
  if (found == nullptr || graph.uses(node.operands[0]) == 1) return std::nullopt;
  Node convert = *found;
  Node slice = node;
  slice.operands[0] = convert.operands[0];
  TensorType type = graph.result_type();
  type.dtype = graph.type(convert.operands[0]).dtype;
  convert.operands[0] = graph.Add(std::move(slice), std::move(type));
  return graph.Add(std::move(convert), graph.result_type());
}

}  // namespace

absl::StatusOr<bool> RepeatConverts(Graph* graph, const PassOptions& options) {
  if (!options.fuses) return false;
  return GraphRewriter::Run(graph, &Rewrite, GraphRewriter::kCountUses);
}

}  // namespace tensord
