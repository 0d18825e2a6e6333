#include "engine/autodiff/transpose.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/derivative.h"
#include "engine/ops/core_ops.h"

namespace tensord {

Transposition::Transposition(const Graph& source, const LinearizedGraph& linearized, std::vector<ValueId> values,
                             const std::vector<bool>& is_kept, Graph* target, DerivativeBuilder* builder)
    : source_(source),
      linearized_(linearized),
      target_(*target),
      builder_(*builder),
      values_(std::move(values)),
      cotangents_(static_cast<size_t>(linearized.graph.num_values())),
      slices_(linearized) {
  if (!is_kept.empty()) recomputation_.emplace(source, linearized, is_kept, &values_, builder);
}

void Transposition::AddCotangent(ValueId tangent, ValueId cotangent) {
  ValueId& sum = cotangents_[static_cast<size_t>(tangent.index)];
  sum = sum.is_set() ? builder_.Add(Def(CoreOp::kAdd), {sum, cotangent}) : cotangent;
}

void Transposition::AddSlices(ValueId tangent) {
  const ValueId joined = slices_.Join(tangent, &builder_);
  if (joined.is_set()) AddCotangent(tangent, joined);
}

ValueId Transposition::Copied(ValueId value) {
  ValueId& copied = values_[static_cast<size_t>(value.index)];
  if (copied.is_set()) return copied;
  const Graph& graph = linearized_.graph;
  const int32_t producer = graph.producer(value);
  if (recomputation_.has_value() && linearized_.differentiated[static_cast<size_t>(producer)] < 0) {
    recomputation_->Compute(producer);
    return copied;
  }
  const Node& node = graph.nodes()[static_cast<size_t>(producer)];
  DerivativeBuilder::Values operands;
  // As deep as the nodes that one rule writes: all others are copied.
  for (ValueId operand : node.operands) operands.push_back(Copied(operand));
  std::vector<const TensorType*> types;
  for (int32_t r = 0; r < node.num_results; ++r) types.push_back(&graph.type({node.first_result.index + r}));
  const ValueId first = builder_.Copy(node, operands, types);
  for (int32_t r = 0; r < node.num_results; ++r) {
    values_[static_cast<size_t>(node.first_result.index + r)] = {first.index + r};
  }
  return values_[static_cast<size_t>(value.index)];
}

void Transposition::TransposeNode(const Node& node, const Node& written) {
  const Graph& graph = linearized_.graph;
  if (slices_.Take(node.first_result, CotangentOf(node.first_result))) return;
  DerivativeBuilder::Values operands, cotangents, operand_cotangents(node.operands.size());
  absl::InlinedVector<const TensorType*, 4> operand_types, result_types;
  for (int32_t r = 0; r < node.num_results; ++r) {
    cotangents.push_back(cotangents_[static_cast<size_t>(node.first_result.index + r)]);
    result_types.push_back(&graph.type({node.first_result.index + r}));
  }
  if (recomputation_.has_value()) {
    recomputation_->WaitFor(
        *std::find_if(cotangents.begin(), cotangents.end(), [](ValueId ct) { return ct.is_set(); }));
  }
  for (ValueId operand : node.operands) {
    const bool is_linear = linearized_.is_linear[static_cast<size_t>(operand.index)];
    operands.push_back(is_linear ? ValueId() : Copied(operand));
    operand_types.push_back(&graph.type(operand));
  }
  builder_.SetNode(written.name, written.op->name, "vjp");
  TransposeCall call{.op = *node.op,
                     .attrs = node.attrs,
                     .operands = operands,
                     .operand_types = operand_types,
                     .result_types = result_types,
                     .cotangents = cotangents,
                     .operand_cotangents = absl::MakeSpan(operand_cotangents),
                     .graph = builder_};
  node.op->linear_transpose.get()(call);
  if (!builder_.ok()) return;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (!operands[k].is_set() && operand_cotangents[k].is_set()) AddCotangent(node.operands[k], operand_cotangents[k]);
  }
}

absl::Status Transposition::Run() {
  const Graph& graph = linearized_.graph;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    RETURN_IF_ERROR(CheckStopped());
    const Node& node = graph.nodes()[i];
    if (!linearized_.is_linear[static_cast<size_t>(node.first_result.index)]) continue;
    const Node& written = source_.nodes()[static_cast<size_t>(linearized_.differentiated[i])];
    builder_.SetNode(written.name, written.op->name, "vjp");
    for (int32_t r = 0; r < node.num_results; ++r) AddSlices({node.first_result.index + r});
    bool has_cotangent = false;
    for (int32_t r = 0; r < node.num_results; ++r) has_cotangent |= CotangentOf({node.first_result.index + r}).is_set();
    if (!has_cotangent) continue;
    if (!node.op->linear_transpose.has()) {
      return RefuseWithoutRule(*written.op, written.name, node.op->linear_transpose.reason());
    }
    TransposeNode(node, written);
    RETURN_IF_ERROR(builder_.status());
  }
  for (ValueId tangent : linearized_.wrt) AddSlices(tangent);
  return builder_.status();
}

}  // namespace tensord
