#include "engine/ir/graph_builder.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/names.h"
#include "engine/ir/verifier.h"

namespace tensord {

absl::Status CheckWrittenOut(const Graph& graph, int64_t most) {
  const auto nodes = static_cast<int64_t>(graph.nodes().size());
  if (nodes <= most) return absl::OkStatus();
  return RefuseLimit("graph_nodes", most, nodes, "nodes of the graph with its ops written out");
}

absl::StatusOr<ExpandedResults> GraphBuilder::AddAll(const OpDef& op, Attributes attrs,
                                                     absl::Span<const ValueId> operands) {
  if (op.expand.has()) return op.expand.get()({.attrs = attrs, .operands = operands, .graph = *this});
  const size_t earlier = decided_.size();
  Node node{.name = SizeDeciderName(node_, earlier),
            .op = &op,
            .attrs = std::move(attrs),
            .operands = {operands.begin(), operands.end()},
            .num_results = op.num_results};
  std::vector<ShapeGuard> guards;
  ASSIGN_OR_RETURN(ResultTypes types,
                   InferNode(graph_, node, static_cast<int32_t>(graph_.nodes().size()), &guards, &decided_));
  if (decided_.size() == earlier) node.name = node_;
  const ValueId first = graph_.AddNode(std::move(node));
  ExpandedResults results;
  for (size_t i = 0; i < types.size(); ++i) {
    results.push_back({first.index + static_cast<int32_t>(i)});
    graph_.set_type(results.back(), std::move(types[i]));
  }
  return results;
}

absl::StatusOr<ValueId> GraphBuilder::Add(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands) {
  ASSIGN_OR_RETURN(const ExpandedResults results, AddAll(op, std::move(attrs), operands));
  if (results.size() == 1) return results[0];
  return Refuse(Refusal::kInternal, absl::StrCat(op.name, " has ", results.size(), " results where one was taken"));
}

}  // namespace tensord
