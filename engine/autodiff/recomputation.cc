#include "engine/autodiff/recomputation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/ir/names.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

bool HasRunTimeSize(const TensorType& type) {
  return std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return DependsOnRun(dim.size); });
}

bool IsConstant(const Graph& graph, ValueId value) {
  return !graph.is_input(value) && graph.nodes()[static_cast<size_t>(graph.producer(value))].operands.empty();
}

// Returns by name of an input or a node its first value, and the number of its values.
absl::flat_hash_map<absl::string_view, std::pair<ValueId, int32_t>> ValuesByName(const Graph& graph) {
  absl::flat_hash_map<absl::string_view, std::pair<ValueId, int32_t>> values;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    values[graph.inputs()[i].name] = {ValueId{static_cast<int32_t>(i)}, 1};
  }
  for (const Node& node : graph.nodes()) values[node.name] = {node.first_result, node.num_results};
  return values;
}

}  // namespace

absl::StatusOr<std::vector<bool>> FindCheckpoints(const Graph& graph, const std::vector<std::string>& references) {
  const auto by_name = ValuesByName(graph);
  std::vector<bool> is_kept(static_cast<size_t>(graph.num_values())), is_named(is_kept.size());
  for (const std::string& reference : references) {
    const size_t colon = reference.find(':');
    const auto found = by_name.find(absl::string_view(reference).substr(0, colon));
    int32_t result = 0;
    bool has_number = true;
    if (colon != std::string::npos) {
      // One spelling a value: "x:0", not "x: 0" or "x:00".
      const absl::string_view digits = absl::string_view(reference).substr(colon + 1);
      has_number = absl::SimpleAtoi(digits, &result) && absl::StrCat(result) == digits;
    }
    if (found == by_name.end() || !has_number || result < 0 || result >= found->second.second) {
      return Refuse(Refusal::kValueUnknown, absl::StrCat("checkpoints name \"", PrintableName(reference),
                                                         "\", which is no value of the graph"));
    }
    const size_t value = static_cast<size_t>(found->second.first.index + result);
    if (is_named[value]) {
      return Refuse(Refusal::kNameDuplicate,
                    absl::StrCat("checkpoints name the value \"", PrintableName(reference), "\" twice"));
    }
    is_named[value] = true;
    for (int32_t r = 0; r < found->second.second; ++r)
      is_kept[static_cast<size_t>(found->second.first.index + r)] = true;
  }
  for (int32_t v = 0; v < graph.num_values(); ++v) {
    if (graph.is_input({v}) || IsConstant(graph, {v}) || HasRunTimeSize(graph.type({v}))) {
      is_kept[static_cast<size_t>(v)] = true;
    }
  }
  return is_kept;
}

Recomputation::Recomputation(const Graph& source, const LinearizedGraph& linearized, const std::vector<bool>& is_kept,
                             std::vector<ValueId>* values, DerivativeBuilder* builder)
    : linearized_(linearized), values_(*values), builder_(*builder), is_stored_(values->size()) {
  for (int32_t v = 0; v < source.num_values(); ++v) {
    const size_t value = static_cast<size_t>(linearized.values[static_cast<size_t>(v)].index);
    if (!is_kept[static_cast<size_t>(v)]) {
      values_[value] = {};
    } else if (!IsConstant(source, {v})) {
      is_stored_[value] = true;
    }
  }
}

void Recomputation::WaitFor(ValueId cotangent) {
  if (cotangent == cotangent_) return;
  cotangent_ = cotangent;
  behind_barriers_.clear();
}

ValueId Recomputation::Kept(ValueId value) {
  ValueId& behind = behind_barriers_[value.index];
  if (behind.is_set()) return behind;
  const Graph& graph = linearized_.graph;
  const OpDef& barrier = Def(CoreOp::kOptimizationBarrier);
  builder_.SetNode(graph.NameOf(value), barrier.name, "kept");
  behind = builder_.Add(barrier, {values_[static_cast<size_t>(value.index)], cotangent_});
  return behind;
}

ValueId Recomputation::OperandOf(ValueId value) {
  return is_stored_[static_cast<size_t>(value.index)] ? Kept(value) : values_[static_cast<size_t>(value.index)];
}

void Recomputation::Copy(const Node& node) {
  const Graph& graph = linearized_.graph;
  DerivativeBuilder::Values operands;
  for (ValueId operand : node.operands) operands.push_back(OperandOf(operand));
  std::vector<const TensorType*> types;
  for (int32_t r = 0; r < node.num_results; ++r) types.push_back(&graph.type({node.first_result.index + r}));
  builder_.SetNode(node.name, node.op->name, "again");
  if (!builder_.ok()) return;
  Node again = node;
  again.name = builder_.TakeName(absl::StrCat(node.name, ".again"));
  const ValueId first = builder_.Copy(again, operands, types);
  for (int32_t r = 0; r < node.num_results; ++r) {
    values_[static_cast<size_t>(node.first_result.index + r)] = {first.index + r};
  }
}

void Recomputation::Compute(int32_t node) {
  const Graph& graph = linearized_.graph;
  std::vector<std::pair<int32_t, size_t>> way = {{node, 0}};  // nodes, and how many of their operands there are already
  while (!way.empty() && builder_.ok()) {
    auto& [index, known] = way.back();
    const Node& at = graph.nodes()[static_cast<size_t>(index)];
    while (known < at.operands.size() && values_[static_cast<size_t>(at.operands[known].index)].is_set()) ++known;
    if (known < at.operands.size()) {
      way.emplace_back(graph.producer(at.operands[known]), 0);
      continue;
    }
    Copy(at);
    way.pop_back();
  }
}

}  // namespace tensord
