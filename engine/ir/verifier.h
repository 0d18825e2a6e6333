#ifndef TENSORD_ENGINE_IR_VERIFIER_H_
#define TENSORD_ENGINE_IR_VERIFIER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/inference.h"

namespace tensord {

// Checks a graph that came from outside and computes the type of every value: operand counts, attributes, dtypes and
// shapes by each op's rule, symbols bound by the inputs, sizes that fit into 64 bits, size expressions of at most
// kMaxExpressionParts together, ranks of at most kMaxRank. A refusal names the node.
// Returns the relations between sizes that only a run can decide.
absl::StatusOr<std::vector<ShapeGuard>> InferTypes(Graph* graph);

// Returns the types of one node's results; guards are appended, and so are `bounds` of sizes that the run decides.
// Without `bounds` such sizes have none. The parts of size expressions are added to `parts`, and must keep their bound
// there; without `parts` those of this node alone.
absl::StatusOr<ResultTypes> InferNode(const Graph& graph, const Node& node, int32_t node_index,
                                      std::vector<ShapeGuard>* guards, RunTimeBounds* bounds = nullptr,
                                      int64_t* parts = nullptr);

// Runs inference again over a graph that a pass made, and refuses with INTERNAL if a value's type differs from the
// recorded one.
absl::Status VerifyTypes(const Graph& graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_IR_VERIFIER_H_
