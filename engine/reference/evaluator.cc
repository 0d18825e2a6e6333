#include "engine/reference/evaluator.h"

#include <utility>

#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/size_binding.h"

namespace tensord {

absl::StatusOr<Literal> EvaluateNode(const OpDef& op, const Attributes& attrs,
                                     absl::Span<const Literal* const> operands, const ConcreteType& result) {
  ASSIGN_OR_RETURN(Literal literal, Literal::Create(result));
  RETURN_IF_ERROR(op.reference.get()({.attrs = attrs, .operands = operands, .results = absl::MakeSpan(&literal, 1)}));
  return literal;
}

absl::StatusOr<std::vector<Literal>> EvaluateReference(const Graph& graph, absl::Span<const ShapeGuard> guards,
                                                       absl::Span<const Literal> arguments) {
  std::vector<const TensorType*> input_types;
  std::vector<ConcreteType> argument_types;
  for (const GraphInput& input : graph.inputs()) input_types.push_back(&input.type);
  for (const Literal& argument : arguments) argument_types.push_back(argument.type());
  ASSIGN_OR_RETURN(const SizeBinding binding, SizeBinding::Create(input_types, argument_types));
  for (const ShapeGuard& guard : guards) {
    const Node& node = graph.nodes()[static_cast<size_t>(guard.node)];
    RETURN_IF_ERROR(WithNode(binding.Check(guard), node.name, node.op->name));
  }

  std::vector<Literal> values(static_cast<size_t>(graph.num_values()));
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i];
  for (const Node& node : graph.nodes()) {
    std::vector<const Literal*> operands;
    for (ValueId v : node.operands) operands.push_back(&values[static_cast<size_t>(v.index)]);
    const absl::StatusOr<ConcreteType> type = binding.Resolve(graph.type(node.first_result));
    if (!type.ok()) return WithNode(type.status(), node.name, node.op->name);
    absl::StatusOr<Literal> result = EvaluateNode(*node.op, node.attrs, operands, *type);
    if (!result.ok()) return WithNode(result.status(), node.name, node.op->name);
    values[static_cast<size_t>(node.first_result.index)] = *std::move(result);
  }

  std::vector<Literal> results;
  for (const GraphOutput& output : graph.outputs()) results.push_back(values[static_cast<size_t>(output.value.index)]);
  return results;
}

}  // namespace tensord
