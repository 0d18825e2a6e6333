#ifndef TENSORD_ENGINE_IR_GRAPH_BUILDER_H_
#define TENSORD_ENGINE_IR_GRAPH_BUILDER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/contraction_plan.h"
#include "engine/ir/graph.h"
#include "engine/tensor/run_time_size.h"

namespace tensord {

// No bound on the nodes by which the ops of a graph are written out.
inline constexpr int64_t kAnyNodes = std::numeric_limits<int64_t>::max();

// Refuses a graph whose nodes became more than `most` when its ops were written out by simpler ones: LIMIT_EXCEEDED for
// graph_nodes.
absl::Status CheckWrittenOut(const Graph& graph, int64_t most);

// Appends typed nodes to a graph in the place of one node, whose name they all carry. A node of an op with an expand
// rule is expanded at once, so that no such op is ever in the graph. The second and later nodes that decide sizes have
// their number in their names, since a size is called after its node. Borrows the graph; confined to one thread.
class GraphBuilder {
 public:
  // `plans`, if not null, gets the contraction plans that rules report, and must outlive the builder.
  GraphBuilder(Graph* graph, absl::string_view node, std::vector<ContractionPlan>* plans = nullptr)
      : graph_(*graph), node_(node), plans_(plans) {}

  // The results of the op. Refused as the op's type rule refuses; relations between sizes that only a run can decide
  // are taken to hold: the type rule of the node that is expanded has asked for them.
  absl::StatusOr<ExpandedResults> AddAll(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  // Adds a node of an op with one result.
  absl::StatusOr<ValueId> Add(const OpDef& op, Attributes attrs, absl::Span<const ValueId> operands);
  absl::StatusOr<ValueId> Add(const OpDef& op, absl::Span<const ValueId> operands) {
    return Add(op, Attributes(op.attrs), operands);
  }

  const TensorType& type(ValueId value) const { return graph_.type(value); }

  // Tells whether somebody wants to see the plans of contractions; rules then call AddPlan.
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
