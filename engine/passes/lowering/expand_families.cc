#include "engine/passes/lowering/expand_families.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/algebra/standard_form.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ir/graph_builder.h"
#include "engine/ir/verifier.h"
#include "engine/ops/semiring.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {
namespace {

bool SameSizes(const TensorType& a, const TensorType& b) {
  return a.dtype == b.dtype && a.rank() == b.rank() &&
         std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(),
                    [](const Dim& x, const Dim& y) { return !x.is_static() || !y.is_static() || x == y; });
}

// Tells whether a size depends on the run: its readers are typed anew.
bool HasSizeOfTheRun(const TensorType& type) {
  return std::any_of(type.shape.begin(), type.shape.end(), [](const Dim& dim) { return dim.extent != Extent::kExact; });
}

// Notes the sizes that the op's type rule left to the run, and that are others now.
void NoteSizes(const TensorType& was, const TensorType& is, ExpandedSizes* sizes) {
  for (size_t d = 0; d < was.shape.size(); ++d) {
    const auto symbol = was.shape[d].size.as_symbol();
    if (!symbol.has_value() || !IsRunTimeSymbol(*symbol) || was.shape[d].size == is.shape[d].size) continue;
    sizes->try_emplace(std::string(*symbol), is.shape[d].size);
  }
}

absl::StatusOr<ExpandedResults> ExpandInto(const Node& node, absl::Span<const ValueId> operands, Graph* graph,
                                           std::vector<ContractionPlan>* plans) {
  GraphBuilder builder(graph, node.name, plans);
  return node.op->expand.get()({.attrs = node.attrs, .operands = operands, .graph = builder});
}

// Expands a node with an algebra of its own apart, and takes the standard form of what it becomes.
absl::StatusOr<ExpandedResults> ExpandIn(Algebra algebra, const Node& node, Graph* graph,
                                         std::vector<ContractionPlan>* plans) {
  Graph apart;
  absl::InlinedVector<ValueId, 4> operands;
  std::vector<ValueId> map;  // value of the graph by one of the part
  for (const ValueId operand : node.operands) {
    operands.push_back(apart.AddInput("", graph->type(operand)));
    map.push_back(operand);
  }
  ASSIGN_OR_RETURN(ExpandedResults results, ExpandInto(node, operands, &apart, plans));
  for (const Node& part : apart.nodes()) {
    Node made = part;
    for (ValueId& operand : made.operands) operand = map[static_cast<size_t>(operand.index)];
    std::vector<TensorType> types;
    for (int32_t r = 0; r < part.num_results; ++r) types.push_back(apart.type({part.first_result.index + r}));
    ASSIGN_OR_RETURN(const ValueId first, AppendInStandardForm(algebra, std::move(made), types, graph));
    for (int32_t r = 0; r < part.num_results; ++r) map.push_back({first.index + r});
  }
  for (ValueId& result : results) result = map[static_cast<size_t>(result.index)];
  return results;
}

// Returns the values that take the place of the node's results.
absl::StatusOr<ExpandedResults> Expand(const Node& node, absl::Span<const TensorType> types, Graph* graph,
                                       std::vector<ContractionPlan>* plans) {
  const Algebra algebra = node.op->has(kSumsProducts) ? AlgebraOf(node.attrs) : Algebra::kStandard;
  ASSIGN_OR_RETURN(ExpandedResults results, algebra == Algebra::kStandard
                                                ? ExpandInto(node, node.operands, graph, plans)
                                                : ExpandIn(algebra, node, graph, plans));
  if (static_cast<int32_t>(results.size()) != node.num_results) {
    return Refuse(Refusal::kInternal,
                  absl::StrCat("was expanded to ", results.size(), " results, and has ", node.num_results));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (SameSizes(graph->type(results[i]), types[i])) continue;
    return Refuse(Refusal::kInternal, absl::StrCat("was expanded to ", ToString(graph->type(results[i])),
                                                   " where its type is ", ToString(types[i])));
  }
  return results;
}

}  // namespace

absl::Status ExpandFamilies(Graph* graph, std::vector<ContractionPlan>* plans, ExpandedSizes* sizes,
                            int64_t most_nodes) {
  const auto has_rule = [](const Node& node) { return node.op->expand.has(); };
  if (std::none_of(graph->nodes().begin(), graph->nodes().end(), has_rule)) return absl::OkStatus();

  const std::vector<GraphOutput> outputs = graph->outputs();
  Graph expanded = Graph::EmptyLike(*graph);
  std::vector<Node> nodes = graph->TakeNodes();
  std::vector<TensorType> types = graph->TakeTypes();
  std::vector<ValueId> map;  // new value by old one
  map.reserve(types.size());
  for (const GraphInput& input : graph->inputs()) map.push_back(expanded.AddInput(input.name, input.type));
  bool types_changed = false;
  for (Node& node : nodes) {
    RETURN_IF_ERROR(CheckStopped());
    const absl::Span<const TensorType> old_types(&types[map.size()], static_cast<size_t>(node.num_results));
    for (ValueId& operand : node.operands) operand = map[static_cast<size_t>(operand.index)];
    if (has_rule(node)) {
      const int32_t first_made = expanded.num_values();
      absl::StatusOr<ExpandedResults> results = Expand(node, old_types, &expanded, plans);
      if (!results.ok()) return WithNode(results.status(), node.name, node.op->name);
      if (absl::Status bounded = CheckWrittenOut(expanded, most_nodes); !bounded.ok()) {
        return WithNode(bounded, node.name, node.op->name);
      }
      for (size_t i = 0; i < results->size(); ++i) {
        types_changed = types_changed || !(expanded.type((*results)[i]) == old_types[i]);
        if (sizes != nullptr) NoteSizes(old_types[i], expanded.type((*results)[i]), sizes);
        map.push_back((*results)[i]);
      }
      for (int32_t v = first_made; v < expanded.num_values(); ++v) {
        types_changed = types_changed || HasSizeOfTheRun(expanded.type({v}));
      }
      continue;
    }
    const ValueId first = expanded.AddNode(std::move(node));
    for (size_t i = 0; i < old_types.size(); ++i) {
      map.push_back({first.index + static_cast<int32_t>(i)});
      expanded.set_type(map.back(), old_types[i]);
    }
  }
  for (const GraphOutput& output : outputs) {
    expanded.AddOutput(output.name, map[static_cast<size_t>(output.value.index)]);
  }
  *graph = std::move(expanded);
  return types_changed ? InferTypes(graph).status() : absl::OkStatus();
}

}  // namespace tensord
