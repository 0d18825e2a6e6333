#include "engine/passes/algebra/fold_conj.h"

#include <optional>
#include <utility>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

// The most ops between the dot and the conjugation.
constexpr size_t kMaxMoves = 16;

bool OnlyMovesElements(const OpDef& op) {
  return Is(op, CoreOp::kTranspose) || Is(op, CoreOp::kReshape) || Is(op, CoreOp::kBroadcastInDim) ||
         Is(op, CoreOp::kReverse) || Is(op, CoreOp::kSlice);
}

// Returns the value without the conjugation in it; nothing if there is none.
std::optional<ValueId> WithoutConj(ValueId value, GraphRewriter& graph) {
  std::vector<std::pair<Node, TensorType>> moves;  // from the dot to the conjugation
  while (moves.size() <= kMaxMoves) {
    const Node* producer = graph.producer(value);
    if (producer == nullptr || producer->body != nullptr) return std::nullopt;
    if (Is(*producer->op, CoreOp::kConj)) {
      value = producer->operands[0];
      for (; !moves.empty(); moves.pop_back()) {
        moves.back().first.operands[0] = value;
        value = graph.Add(std::move(moves.back().first), std::move(moves.back().second));
      }
      return value;
    }
    if (!OnlyMovesElements(*producer->op) || graph.uses(value) > 1) return std::nullopt;
    moves.emplace_back(*producer, graph.type(value));
    value = producer->operands[0];
  }
  return std::nullopt;
}

std::optional<ValueId> FoldConjInto(const Node& node, GraphRewriter& graph) {
  if (!Is(*node.op, CoreOp::kDotGeneral) || !kComplexes.Contains(graph.type(node.operands[0]).dtype)) {
    return std::nullopt;
  }
  Node folded = node;
  bool changed = false;
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const std::optional<ValueId> value = WithoutConj(folded.operands[side], graph);
    if (!value.has_value()) continue;
    changed = true;
    folded.operands[side] = *value;
    const absl::string_view flag = side == 0 ? "lhs_conj" : "rhs_conj";
    folded.attrs.Set(flag, folded.attrs.Int(flag) == 0 ? int64_t{1} : int64_t{0});
  }
  if (!changed) return std::nullopt;
  return graph.Add(std::move(folded), graph.result_type());
}

}  // namespace

absl::StatusOr<bool> FoldConj(Graph* graph, const PassOptions&) {
  if (graph->algebra() != Algebra::kStandard) return false;
  bool has_conj = false;
  for (const Node& node : graph->nodes()) has_conj = has_conj || Is(*node.op, CoreOp::kConj);
  if (!has_conj) return false;
  return GraphRewriter::Run(graph, &FoldConjInto, GraphRewriter::kCountUses);
}

}  // namespace tensord
