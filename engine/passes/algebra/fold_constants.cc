#include "engine/passes/algebra/fold_constants.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/passes/rewriting/graph_rewriter.h"
#include "engine/passes/rewriting/splat.h"
#include "engine/reference/evaluator.h"

namespace tensord {
namespace {

constexpr int64_t kMaxResultBytes = 64 << 10;  // larger ones cost memory for as long as the program lives
// Steps of the reference evaluator, some ten nanoseconds each: of a node, and of a graph beyond one share a node.
constexpr int64_t kMaxNodeSteps = int64_t{1} << 18;
constexpr int64_t kGraphSteps = int64_t{1} << 20;
constexpr int64_t kShareOfNode = 16;

class Folder {
 public:
  explicit Folder(int64_t num_nodes) : steps_left_(kGraphSteps + kShareOfNode * num_nodes) {}

  std::optional<ValueId> Fold(const Node& node, GraphRewriter& graph) {
    if (node.operands.empty() || Is(*node.op, CoreOp::kDynamicTruncate) || Is(*node.op, CoreOp::kOptimizationBarrier) ||
        node.op->family != Def(CoreOp::kAdd).family) {
      return std::nullopt;
    }
    if (node.op->has(kElementwise)) return FoldElementwise(node, graph);
    if (!graph.result_type().is_static()) return std::nullopt;
    std::vector<const Literal*> operands;
    int64_t bytes = 0;
    for (ValueId operand : node.operands) {
      const Node* constant = graph.producer_if(operand, CoreOp::kConstant);
      if (constant == nullptr) return std::nullopt;
      operands.push_back(constant->attrs.GetLiteral("value").get());
      bytes += operands.back()->type().num_bytes();
    }
    const ConcreteType type = ToConcreteType(graph.result_type());
    if (type.num_bytes() > std::min(bytes, kMaxResultBytes)) return std::nullopt;
    std::optional<Literal> value = Evaluate(node, operands, type);
    if (!value.has_value()) return std::nullopt;
    return graph.AddConstant(node.name, *std::move(value));
  }

 private:
  // Constants of one shape give a constant; scalars that are spread over a shape give such a scalar.
  std::optional<ValueId> FoldElementwise(const Node& node, GraphRewriter& graph) {
    const TensorType type = graph.result_type();
    std::vector<LiteralPtr> splats, constants;
    for (ValueId operand : node.operands) {
      const Node* constant = graph.producer_if(operand, CoreOp::kConstant);
      if (LiteralPtr splat = SplatOf(graph, operand); splat != nullptr) splats.push_back(std::move(splat));
      if (constant != nullptr) constants.push_back(constant->attrs.GetLiteral("value"));
    }
    const bool all_splats = splats.size() == node.operands.size();
    if (!all_splats && constants.size() != node.operands.size()) return std::nullopt;
    if (all_splats ? !IsExact(type) : !type.is_static()) return std::nullopt;
    ConcreteType of_value = {.dtype = type.dtype, .shape = {}};
    if (!all_splats) of_value = ToConcreteType(type);
    if (of_value.num_bytes() > kMaxResultBytes) return std::nullopt;
    std::vector<const Literal*> operands;
    for (const LiteralPtr& literal : all_splats ? splats : constants) operands.push_back(literal.get());
    std::optional<Literal> value = Evaluate(node, operands, of_value);
    if (!value.has_value()) return std::nullopt;
    if (all_splats) return AddSplat(node.name, *std::move(value), type, &graph);
    return graph.AddConstant(node.name, *std::move(value));
  }

  // Returns nothing if that would take too long, or the evaluator refuses.
  std::optional<Literal> Evaluate(const Node& node, const std::vector<const Literal*>& operands,
                                  const ConcreteType& type) {
    const int64_t steps = StepsOf(node, operands, type);
    if (steps > std::min(kMaxNodeSteps, steps_left_)) return std::nullopt;
    absl::StatusOr<Literal> value = EvaluateNode(*node.op, node.attrs, operands, type);
    if (!value.ok()) return std::nullopt;
    steps_left_ -= steps;
    return *std::move(value);
  }

  static int64_t StepsOf(const Node& node, const std::vector<const Literal*>& operands, const ConcreteType& type) {
    int64_t steps = 1 + type.num_elements();
    for (const Literal* operand : operands) steps = std::max(steps, operand->num_elements());
    if (steps > kMaxNodeSteps || !Is(*node.op, CoreOp::kDotGeneral)) return steps;
    for (int64_t axis : node.attrs.Ints("lhs_contracting_dimensions")) {
      const int64_t size = operands[0]->shape()[static_cast<size_t>(axis)];
      if (size > kMaxNodeSteps) return size;
      steps *= std::max<int64_t>(size, 1);
      if (steps > kMaxNodeSteps) return steps;
    }
    return steps;
  }

  int64_t steps_left_;
};

}  // namespace

absl::StatusOr<bool> FoldConstants(Graph* graph, const PassOptions&) {
  if (graph->algebra() != Algebra::kStandard) return false;  // the reference evaluator reads no other
  Folder folder(static_cast<int64_t>(graph->nodes().size()));
  return GraphRewriter::Run(graph,
                            [&](const Node& node, GraphRewriter& rewriter) { return folder.Fold(node, rewriter); });
}

}  // namespace tensord
