#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONSTANTS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONSTANTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Computes nodes of constant operands with the reference evaluator. The result is at most 64 KiB and no larger than the
// operands together, so that constants never grow; the work is bounded for a node and for the graph. Elementwise nodes
// of scalar constants spread to a shape are computed as scalars and spread afterwards. Iota, broadcasts that repeat
// elements and nodes that the evaluator refuses stay as they are.
absl::StatusOr<bool> FoldConstants(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONSTANTS_H_
