#ifndef TENSORD_ENGINE_PASSES_LAYOUT_SORT_DOT_DIMENSIONS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_SORT_DOT_DIMENSIONS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Lists the contracted axes of a dot_general in ascending order if they lie beside each other in an operand, so that
// they read as one axis: of lhs, else of rhs. Pairs stay together, so the sum has the same terms.
//
// Example: lhs [3,2] with rhs [2,1] becomes lhs [2,3] with rhs [1,2].
absl::StatusOr<bool> SortDotDimensions(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_SORT_DOT_DIMENSIONS_H_
