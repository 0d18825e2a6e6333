#include "engine/passes/layout/permute_products.h"

#include <utility>
#include <vector>

#include "engine/ops/axis_order.h"
#include "engine/ops/core_ops.h"

namespace tensord {
namespace {

// By value: the node that is its only reader, kNone or kSeveral.
constexpr int32_t kNone = -1;
constexpr int32_t kSeveral = -2;

std::vector<int32_t> OnlyReaders(const Graph& graph) {
  std::vector<int32_t> readers(static_cast<size_t>(graph.num_values()), kNone);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    for (ValueId operand : graph.nodes()[i].operands) {
      int32_t& reader = readers[static_cast<size_t>(operand.index)];
      reader = reader == kNone ? static_cast<int32_t>(i) : kSeveral;
    }
  }
  for (const GraphOutput& output : graph.outputs()) readers[static_cast<size_t>(output.value.index)] = kSeveral;
  return readers;
}

// Returns by node the transpose whose place it takes, or kNone.
std::vector<int32_t> TransposesOfProducts(const Graph& graph) {
  const std::vector<int32_t> readers = OnlyReaders(graph);
  std::vector<int32_t> transposes(graph.nodes().size(), kNone);
  for (size_t i = 0; i < transposes.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!Is(*node.op, CoreOp::kDotGeneral)) continue;
    const int32_t reader = readers[static_cast<size_t>(node.first_result.index)];
    if (reader >= 0 && Is(*graph.nodes()[static_cast<size_t>(reader)].op, CoreOp::kTranspose)) transposes[i] = reader;
  }
  return transposes;
}

Graph WithPermutedProducts(const Graph& old, const std::vector<int32_t>& transposes) {
  Graph graph = Graph::EmptyLike(old);
  std::vector<ValueId> values(static_cast<size_t>(old.num_values()));
  const auto new_value = [&values](ValueId value) -> ValueId& { return values[static_cast<size_t>(value.index)]; };
  for (const GraphInput& input : old.inputs()) {
    const ValueId value = graph.AddInput(input.name, input.type);
    new_value(value) = value;
  }
  std::vector<bool> is_absorbed(old.nodes().size());
  for (size_t i = 0; i < old.nodes().size(); ++i) {
    if (is_absorbed[i]) continue;
    Node node = old.nodes()[i];
    ValueId result = node.first_result;
    if (transposes[i] != kNone) {
      const Node& transpose = old.nodes()[static_cast<size_t>(transposes[i])];
      is_absorbed[static_cast<size_t>(transposes[i])] = true;
      std::vector<int64_t> permutation = transpose.attrs.Ints("permutation");
      const std::vector<int64_t>& before = node.attrs.Ints("result_permutation");
      if (!before.empty()) {
        const AxisOrder both = Compose(before, permutation);
        permutation.assign(both.begin(), both.end());
      }
      node.attrs.Set("result_permutation", std::move(permutation));
      result = transpose.first_result;
    }
    for (ValueId& operand : node.operands) operand = new_value(operand);
    const int32_t num_results = node.num_results;
    const ValueId first = graph.AddNode(std::move(node));
    for (int32_t r = 0; r < num_results; ++r) {
      const ValueId from{result.index + r}, to{first.index + r};
      graph.set_type(to, old.type(from));
      new_value(from) = to;
    }
  }
  for (const GraphOutput& output : old.outputs()) graph.AddOutput(output.name, new_value(output.value));
  return graph;
}

}  // namespace

absl::StatusOr<bool> PermuteProducts(Graph* graph, const PassOptions&) {
  const std::vector<int32_t> transposes = TransposesOfProducts(*graph);
  bool any = false;
  for (int32_t transpose : transposes) any = any || transpose != kNone;
  if (!any) return false;
  *graph = WithPermutedProducts(*graph, transposes);
  return true;
}

}  // namespace tensord
