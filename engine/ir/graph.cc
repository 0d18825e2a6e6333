#include "engine/ir/graph.h"

#include "absl/strings/str_cat.h"

namespace tensord {

Graph Graph::EmptyLike(const Graph& graph) {
  Graph empty;
  empty.name_ = graph.name_;
  empty.algebra_ = graph.algebra_;
  empty.inputs_.reserve(graph.inputs_.size());
  empty.nodes_.reserve(graph.nodes_.size());
  empty.outputs_.reserve(graph.outputs_.size());
  empty.types_.reserve(graph.types_.size());
  empty.producers_.reserve(graph.types_.size());
  return empty;
}

ValueId Graph::AddInput(absl::string_view name, TensorType type) {
  const ValueId value{num_values()};
  types_.push_back(type);
  producers_.push_back(-1);
  inputs_.push_back({.name = std::string(name), .type = std::move(type)});
  return value;
}

ValueId Graph::AddNode(Node node) {
  const ValueId value{num_values()};
  node.first_result = value;
  types_.resize(types_.size() + static_cast<size_t>(node.num_results));
  producers_.resize(types_.size(), static_cast<int32_t>(nodes_.size()));
  nodes_.push_back(std::move(node));
  return value;
}

void Graph::AddOutput(absl::string_view name, ValueId value) {
  outputs_.push_back({.name = std::string(name), .value = value});
}

std::string Graph::NameOf(ValueId v) const {
  if (is_input(v)) return inputs_[static_cast<size_t>(v.index)].name;
  const Node& node = nodes_[static_cast<size_t>(producer(v))];
  const int32_t result = v.index - node.first_result.index;
  return result == 0 ? node.name : absl::StrCat(node.name, ":", result);
}

}  // namespace tensord
