#include "engine/passes/algebra/sink_conj.h"

#include <optional>
#include <utility>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

using Result = std::optional<ValueId>;

ValueId AddUnary(CoreOp op, const Node& node, ValueId operand, TensorType type, GraphRewriter& graph) {
  return graph.Add(op, node.name, Attributes(Def(op).attrs), {operand}, std::move(type));
}

bool MovesEveryElement(const OpDef& op) {
  return Is(op, CoreOp::kTranspose) || Is(op, CoreOp::kReshape) || Is(op, CoreOp::kBroadcastInDim) ||
         Is(op, CoreOp::kReverse);
}

Result RewriteConj(const Node& node, GraphRewriter& graph) {
  const ValueId operand = node.operands[0];
  const TensorType type = graph.result_type();
  if (!kComplexes.Contains(type.dtype)) return graph.Same(operand);
  const Node* producer = graph.producer(operand);
  if (producer == nullptr || producer->body != nullptr || producer->operands.empty()) return std::nullopt;
  const Node inner = *producer;
  const ValueId source = inner.operands[0];
  if (Is(*inner.op, CoreOp::kConj)) return graph.Same(source);
  if (graph.uses(operand) > 1) return std::nullopt;
  if (Is(*inner.op, CoreOp::kComplex)) {
    const ValueId imag = inner.operands[1];
    const ValueId opposite = AddUnary(CoreOp::kNegate, node, imag, graph.type(imag), graph);
    return graph.Add(CoreOp::kComplex, node.name, inner.attrs, {source, opposite}, type);
  }
  if (Is(*inner.op, CoreOp::kNegate)) {
    const Node* conj = graph.producer_if(source, CoreOp::kConj);
    return conj == nullptr ? std::nullopt : Result(AddUnary(CoreOp::kNegate, node, conj->operands[0], type, graph));
  }
  if (!MovesEveryElement(*inner.op)) return std::nullopt;
  Node moved = inner;
  moved.operands[0] = AddUnary(CoreOp::kConj, node, source, graph.type(source), graph);
  return graph.Add(std::move(moved), type);
}

// Rewrites an op that reads one part, or the modulus.
Result RewritePart(const Node& node, GraphRewriter& graph) {
  const Node* conj = graph.producer_if(node.operands[0], CoreOp::kConj);
  if (conj == nullptr) return std::nullopt;
  const ValueId source = conj->operands[0];
  if (!kComplexes.Contains(graph.type(source).dtype)) return std::nullopt;
  const TensorType type = graph.result_type();
  const ValueId part = AddUnary(static_cast<CoreOp>(node.op->index), node, source, type, graph);
  return Is(*node.op, CoreOp::kImag) ? AddUnary(CoreOp::kNegate, node, part, type, graph) : part;
}

Result SinkConjOf(const Node& node, GraphRewriter& graph) {
  if (Is(*node.op, CoreOp::kConj)) return RewriteConj(node, graph);
  if (Is(*node.op, CoreOp::kReal) || Is(*node.op, CoreOp::kImag) || Is(*node.op, CoreOp::kAbs)) {
    return RewritePart(node, graph);
  }
  return std::nullopt;
}

bool HasConj(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (Is(*node.op, CoreOp::kConj)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> SinkConj(Graph* graph, const PassOptions&) {
  if (graph->algebra() != Algebra::kStandard || !HasConj(*graph)) return false;
  return GraphRewriter::Run(graph, &SinkConjOf, GraphRewriter::kCountUses);
}

}  // namespace tensord
