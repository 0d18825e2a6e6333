#ifndef TENSORD_ENGINE_ALGEBRA_STANDARD_FORM_H_
#define TENSORD_ENGINE_ALGEBRA_STANDARD_FORM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_builder.h"

namespace tensord {

// Writes a graph in another algebra with ops of the standard one, of the same values: sums become maxima, minima or
// ors, products sums, fillings selections, and a dot_general carries the algebra as its attribute. The graph passes
// CheckVocabulary, has types, and holds no op with an expand rule. Nodes keep the name of the node that they are made
// of. Does nothing to a graph in the standard algebra. LIMIT_EXCEEDED if more than `most_nodes` would be needed.
absl::Status WriteInStandardForm(Graph* graph, int64_t most_nodes = kAnyNodes);

// Appends one node to a graph in the standard algebra, as above; its operands are values of that graph, and `types` are
// its results' types. Returns the first result. Refusals do not name the node.
absl::StatusOr<ValueId> AppendInStandardForm(Algebra algebra, Node node, absl::Span<const TensorType> types,
                                             Graph* graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_ALGEBRA_STANDARD_FORM_H_
