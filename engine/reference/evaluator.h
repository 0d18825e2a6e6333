#ifndef TENSORD_ENGINE_REFERENCE_EVALUATOR_H_
#define TENSORD_ENGINE_REFERENCE_EVALUATOR_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/tensor/literal.h"

namespace tensord {

// Runs a graph by each op's reference rule, one node after the other, on the host: slow and obvious; every other way of
// running a graph is tested against it. `graph` must have passed InferTypes, which gave `guards`. Literals are
// column-major. Refuses as a run does: argument mismatches, guards that do not hold.
absl::StatusOr<std::vector<Literal>> EvaluateReference(const Graph& graph, absl::Span<const ShapeGuard> guards,
                                                       absl::Span<const Literal> arguments);

// One node on literals; `results` are the types of its results.
absl::StatusOr<std::vector<Literal>> EvaluateNode(const OpDef& op, const Attributes& attrs,
                                                  absl::Span<const Literal* const> operands,
                                                  absl::Span<const ConcreteType> results);
// The same for a node of one result.
absl::StatusOr<Literal> EvaluateNode(const OpDef& op, const Attributes& attrs,
                                     absl::Span<const Literal* const> operands, const ConcreteType& result);

}  // namespace tensord

#endif  // TENSORD_ENGINE_REFERENCE_EVALUATOR_H_
