#ifndef TENSORD_ENGINE_IR_GRAPH_BUILDER_H_
#define TENSORD_ENGINE_IR_GRAPH_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/graph.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

// Appends typed nodes to a graph in the place of one node, whose name they all carry. A node whose op has an expand
// rule is expanded at once, so that none of those is ever in the graph. Those that decide sizes after the first one
// have its number in their names, since a size is called after its node. Borrows the graph; confined to one thread.
class GraphBuilder {
 public:
  // `plans`, where it is not null, gets what rules say of their plans, and must outlive the builder.
  GraphBuilder(Graph* graph, absl::string_view node, std::vector<ContractionPlan>* plans = nullptr)
      : graph_(*graph), node_(node), plans_(plans) {}

  // The results of the op. Refused as the op's type rule refuses; relations between sizes that only a run can decide
  // are taken to hold: the type rule of the node that is expanded has asked for them.
  absl::StatusOr<ExpandedResults> AddAll(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  // Of an op of one result.
  absl::StatusOr<ValueId> Add(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  absl::StatusOr<ValueId> Add(const OpDef& op, absl::Span<const ValueId> operands) {
    return Add(op, Attributes(op.attrs), operands);
  }

  const TensorType& type(ValueId value) const { return graph_.type(value); }

  // Whether somebody wants to know how contractions are planned; then AddPlan says it.
  bool wants_plans() const { return plans_ != nullptr; }
  void AddPlan(ContractionPlan plan) {
    plan.node = node_;
    plans_->push_back(std::move(plan));
  }

 private:
  Graph& graph_;
  const std::string node_;
  std::vector<ContractionPlan>* const plans_;
  RunTimeBounds decided_;  // sizes, by these nodes
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_GRAPH_BUILDER_H_
