#include "engine/ir/liveness.h"

#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

// The nodes that decide sizes, by the symbol of the size.
absl::flat_hash_map<std::string, size_t> FindDeciders(const Graph& graph) {
  absl::flat_hash_map<std::string, size_t> deciders;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (const Dim& dim : graph.type(node.first_result).shape) {
      if (dim.extent == Extent::kExact) continue;
      const auto symbol = dim.size.as_symbol();
      if (symbol.has_value() && *symbol == RunTimeSymbol(node.name)) deciders.try_emplace(std::string(*symbol), i);
    }
  }
  return deciders;
}

}  // namespace

std::vector<bool> LiveNodes(const Graph& graph) {
  const absl::flat_hash_map<std::string, size_t> deciders = FindDeciders(graph);
  std::vector<bool> live(graph.nodes().size());
  const auto mark = [&](ValueId value) {
    if (!graph.is_input(value)) live[static_cast<size_t>(graph.producer(value))] = true;
  };
  const auto mark_deciders = [&](const TensorType& type) {
    for (const Dim& dim : type.shape) {
      if (dim.extent == Extent::kExact) continue;
      dim.size.ForEachLeaf([&](const DimAtom& atom) {
        const auto it = deciders.find(atom.symbol);
        if (it != deciders.end()) live[it->second] = true;
      });
    }
  };
  for (const GraphOutput& output : graph.outputs()) mark(output.value);
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Node& node = graph.nodes()[i];
    for (ValueId operand : node.operands) mark(operand);
    if (deciders.empty()) continue;
    for (int32_t r = 0; r < node.num_results; ++r) mark_deciders(graph.type({node.first_result.index + r}));
    for (int32_t v = 0; node.body != nullptr && v < node.body->num_values(); ++v) mark_deciders(node.body->type({v}));
  }
  return live;
}

}  // namespace tensord
