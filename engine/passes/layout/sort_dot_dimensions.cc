#include "engine/passes/layout/sort_dot_dimensions.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {
namespace {

using Ints = std::vector<int64_t>;

bool LieTogether(const Ints& axes) {
  const auto [least, most] = std::minmax_element(axes.begin(), axes.end());
  return *most - *least + 1 == static_cast<int64_t>(axes.size());
}

std::optional<ValueId> Rewrite(const Node& node, GraphRewriter& graph) {
  if (!Is(*node.op, CoreOp::kDotGeneral)) return std::nullopt;
  const Ints &lhs = node.attrs.Ints("lhs_contracting_dimensions"), &rhs = node.attrs.Ints("rhs_contracting_dimensions");
  if (lhs.size() < 2) return std::nullopt;
  const bool lhs_decides = LieTogether(lhs);
  if (!lhs_decides && !LieTogether(rhs)) return std::nullopt;
  const Ints& decides = lhs_decides ? lhs : rhs;
  if (std::is_sorted(decides.begin(), decides.end())) return std::nullopt;
  std::vector<size_t> order(lhs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return decides[a] < decides[b]; });
  Ints sorted_lhs, sorted_rhs;
  for (size_t i : order) {
    sorted_lhs.push_back(lhs[i]);
    sorted_rhs.push_back(rhs[i]);
  }
  Node sorted = node;
  sorted.attrs.Set("lhs_contracting_dimensions", std::move(sorted_lhs));
  sorted.attrs.Set("rhs_contracting_dimensions", std::move(sorted_rhs));
  return graph.Add(std::move(sorted), graph.result_type());
}

}  // namespace

absl::StatusOr<bool> SortDotDimensions(Graph* graph, const PassOptions&) { return GraphRewriter::Run(graph, &Rewrite); }

}  // namespace tensord
