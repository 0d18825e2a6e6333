#include "engine/passes/rewriting/splat.h"

#include <utility>

namespace tensord {

LiteralPtr SplatOf(const GraphRewriter& graph, ValueId value) {
  const Node* node = graph.producer(value);
  if (node == nullptr || node->body != nullptr) return nullptr;
  if (Is(*node->op, CoreOp::kBroadcastInDim)) {
    if (graph.type(node->operands[0]).rank() != 0) return nullptr;
    node = graph.producer(node->operands[0]);
    if (node == nullptr) return nullptr;
  }
  if (!Is(*node->op, CoreOp::kConstant)) return nullptr;
  const LiteralPtr& literal = node->attrs.GetLiteral("value");
  return literal->type().rank() == 0 ? literal : nullptr;
}

bool IsExact(const TensorType& type) {
  for (const Dim& dim : type.shape) {
    if (dim.extent != Extent::kExact) return false;
  }
  return true;
}

ValueId AddSplat(absl::string_view name, Literal number, const TensorType& type, GraphRewriter* graph) {
  const ValueId scalar = graph->AddConstant(name, std::move(number));
  if (type.rank() == 0) return scalar;
  std::vector<DimExpr> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.size);
  Attributes attrs(Def(CoreOp::kBroadcastInDim).attrs);
  attrs.Set("shape", std::move(shape));
  return graph->Add(CoreOp::kBroadcastInDim, name, std::move(attrs), {scalar}, type);
}

}  // namespace tensord
