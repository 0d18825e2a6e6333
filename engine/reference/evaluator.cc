#include "engine/reference/evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/liveness.h"
#include "engine/ir/size_binding.h"
#include "engine/ops/core_ops.h"
#include "engine/ops/dynamic_truncate.h"

namespace tensord {
namespace {

absl::Status CheckGuard(const Graph& graph, const SizeBinding& binding, const ShapeGuard& guard) {
  const Node& node = graph.nodes()[static_cast<size_t>(guard.node)];
  return WithNode(binding.Check(guard), node.name, node.op->name);
}

// The results of a node that has a body.
absl::StatusOr<std::vector<Literal>> EvaluateBody(const Graph& body, const SizeBinding& binding,
                                                  absl::Span<const Literal* const> operands) {
  std::vector<Literal> values(static_cast<size_t>(body.num_values()));
  for (size_t i = 0; i < operands.size(); ++i) values[i] = *operands[i];
  for (const Node& node : body.nodes()) {
    std::vector<const Literal*> inner;
    for (ValueId v : node.operands) inner.push_back(&values[static_cast<size_t>(v.index)]);
    ASSIGN_OR_RETURN(const ConcreteType type, binding.Resolve(body.type(node.first_result)));
    ASSIGN_OR_RETURN(values[static_cast<size_t>(node.first_result.index)],
                     EvaluateNode(*node.op, node.attrs, inner, type));
  }
  std::vector<Literal> results;
  for (const GraphOutput& output : body.outputs()) results.push_back(values[static_cast<size_t>(output.value.index)]);
  return results;
}

}  // namespace

absl::StatusOr<Literal> EvaluateNode(const OpDef& op, const Attributes& attrs,
                                     absl::Span<const Literal* const> operands, const ConcreteType& result) {
  ASSIGN_OR_RETURN(std::vector<Literal> literals, EvaluateNode(op, attrs, operands, absl::MakeConstSpan(&result, 1)));
  return std::move(literals[0]);
}

absl::StatusOr<std::vector<Literal>> EvaluateNode(const OpDef& op, const Attributes& attrs,
                                                  absl::Span<const Literal* const> operands,
                                                  absl::Span<const ConcreteType> results) {
  if (!op.reference.has()) {
    return Refuse(Refusal::kUnsupportedOnDevice,
                  absl::StrCat("there is no reference meaning of ", op.name, ": ", op.reference.reason()));
  }
  std::vector<Literal> literals;
  for (const ConcreteType& type : results) {
    ASSIGN_OR_RETURN(literals.emplace_back(), Literal::Create(type));
  }
  RETURN_IF_ERROR(op.reference.get()({.attrs = attrs, .operands = operands, .results = absl::MakeSpan(literals)}));
  return literals;
}

absl::StatusOr<std::vector<Literal>> EvaluateReference(const Graph& graph, absl::Span<const ShapeGuard> guards,
                                                       absl::Span<const Literal> arguments) {
  std::vector<const TensorType*> input_types;
  std::vector<ConcreteType> argument_types;
  for (const GraphInput& input : graph.inputs()) input_types.push_back(&input.type);
  for (const Literal& argument : arguments) argument_types.push_back(argument.type());
  ASSIGN_OR_RETURN(SizeBinding binding, SizeBinding::Create(input_types, argument_types));
  const std::vector<bool> live = LiveNodes(graph);
  std::vector<const ShapeGuard*> pending;  // by node
  for (const ShapeGuard& guard : guards) {
    if (DependsOnRun(guard.lhs) || DependsOnRun(guard.rhs)) {
      if (live[static_cast<size_t>(guard.node)]) pending.push_back(&guard);
      continue;
    }
    RETURN_IF_ERROR(CheckGuard(graph, binding, guard));
  }

  std::vector<Literal> values(static_cast<size_t>(graph.num_values()));
  for (size_t i = 0; i < arguments.size(); ++i) values[i] = arguments[i];
  auto guard = pending.begin();
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!live[i]) continue;
    const Node& node = graph.nodes()[i];
    for (; guard != pending.end() && (*guard)->node == static_cast<int32_t>(i); ++guard) {
      RETURN_IF_ERROR(CheckGuard(graph, binding, **guard));
    }
    std::vector<const Literal*> operands;
    for (ValueId v : node.operands) operands.push_back(&values[static_cast<size_t>(v.index)]);
    if (Is(*node.op, CoreOp::kDynamicTruncate)) {
      const size_t axis = static_cast<size_t>(node.attrs.Int("dimension"));
      binding.Bind(RunTimeSymbol(node.name),
                   TruncatedSize(operands[1]->bytes().data(), operands[1]->dtype(), operands[0]->shape()[axis]));
    }
    if (node.body != nullptr) {
      absl::StatusOr<std::vector<Literal>> results = EvaluateBody(*node.body, binding, operands);
      if (!results.ok()) return WithNode(results.status(), node.name, node.op->name);
      std::move(results->begin(), results->end(), values.begin() + node.first_result.index);
      continue;
    }
    std::vector<ConcreteType> types;
    for (int32_t r = 0; r < node.num_results; ++r) {
      absl::StatusOr<ConcreteType> type = binding.Resolve(graph.type({node.first_result.index + r}));
      if (!type.ok()) return WithNode(type.status(), node.name, node.op->name);
      types.push_back(*std::move(type));
    }
    absl::StatusOr<std::vector<Literal>> node_results = EvaluateNode(*node.op, node.attrs, operands, types);
    if (!node_results.ok()) return WithNode(node_results.status(), node.name, node.op->name);
    std::move(node_results->begin(), node_results->end(), values.begin() + node.first_result.index);
  }

  std::vector<Literal> results;
  for (const GraphOutput& output : graph.outputs()) results.push_back(values[static_cast<size_t>(output.value.index)]);
  return results;
}

}  // namespace tensord
