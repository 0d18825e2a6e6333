#ifndef TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Joins ops that only move elements: transpose, reshape, broadcast_in_dim, slice, reverse, pad, concatenate and
// dynamic_slice. Those that do nothing go, and two of one kind in a row become one. A broadcast is made in the shape in
// which it is wanted, and its operand is cut and turned before. Sizes are compared as expressions. Every element keeps
// its bits.
//
// Example: slice(broadcast_in_dim(x)) becomes broadcast_in_dim(slice(x)).
absl::StatusOr<bool> SimplifyLayout(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_
