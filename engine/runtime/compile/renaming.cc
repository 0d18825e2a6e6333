#include "engine/runtime/compile/renaming.h"

#include <algorithm>
#include <utility>

#include "engine/base/refusal.h"

namespace tensord {
namespace {

template <typename Function>
void ForEachName(const Graph& graph, Function&& function) {
  for (const GraphInput& input : graph.inputs()) function(input.name);
  for (const Node& node : graph.nodes()) function(node.name);
}

}  // namespace

std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.inputs().size() + graph.nodes().size());
  ForEachName(graph, [&names](const std::string& name) { names.push_back(name); });
  return names;
}

Renaming::Renaming(absl::Span<const std::string> program_names, const Graph& graph) {
  if (program_names.size() != graph.inputs().size() + graph.nodes().size()) return;
  auto program_name = program_names.begin();
  ForEachName(graph, [&](const std::string& name) {
    if (*program_name != name) names_.emplace(*program_name, name);
    ++program_name;
  });
}

Renaming::Renaming(absl::Span<const std::string> program_names, absl::Span<const std::string> graph_names) {
  if (program_names.size() != graph_names.size()) return;
  for (size_t i = 0; i < program_names.size(); ++i) {
    if (program_names[i] != graph_names[i]) names_.emplace(program_names[i], graph_names[i]);
  }
}

const std::string& Renaming::Of(const std::string& name) const {
  const auto it = names_.find(name);
  return it == names_.end() ? name : it->second;
}

absl::Status Renaming::Of(absl::Status status) const {
  if (names_.empty()) return status;
  const auto detail = DetailOf(status);
  if (!detail.has_value()) return status;
  const auto it = names_.find(detail->node);
  return it == names_.end() ? status : WithOtherNode(std::move(status), it->second);
}

}  // namespace tensord
