#include "engine/ir/liveness.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

// The nodes that decide sizes of the values in a node's body. No operand of the node needs to have such a size.
class BodySizes {
 public:
  explicit BodySizes(const Graph& graph) : graph_(graph) {}

  // A layout op that a pass put around a decider may have its name too: such a one is visited as well.
  template <typename Visit>
  void ForEachDecider(const Graph& body, const Visit& visit) {
    for (int32_t v = 0; v < body.num_values(); ++v) {
      for (const Dim& dim : body.type({v}).shape) {
        if (dim.extent == Extent::kExact) continue;
        dim.size.ForEachLeaf([&](const DimAtom& atom) {
          if (!IsRunTimeSymbol(atom.symbol)) return;
          const auto nodes = NodesBySymbol().find(atom.symbol);
          if (nodes == NodesBySymbol().end()) return;
          for (size_t node : nodes->second) visit(node);
        });
      }
    }
  }

 private:
  // Made for the first such size, as few graphs have one.
  const absl::flat_hash_map<std::string, std::vector<size_t>>& NodesBySymbol() {
    if (nodes_.empty()) {
      for (size_t i = 0; i < graph_.nodes().size(); ++i) nodes_[RunTimeSymbol(graph_.nodes()[i].name)].push_back(i);
    }
    return nodes_;
  }

  const Graph& graph_;
  absl::flat_hash_map<std::string, std::vector<size_t>> nodes_;
};

}  // namespace

std::vector<bool> LiveNodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  BodySizes sizes(graph);
  const auto mark = [&](ValueId value) {
    if (!graph.is_input(value)) live[static_cast<size_t>(graph.producer(value))] = true;
  };
  for (const GraphOutput& output : graph.outputs()) mark(output.value);
  for (size_t i = live.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Node& node = graph.nodes()[i];
    for (ValueId operand : node.operands) mark(operand);
    if (node.body == nullptr) continue;
    sizes.ForEachDecider(*node.body, [&](size_t decider) {
      if (decider < i) live[decider] = true;
    });
  }
  return live;
}

}  // namespace tensord
