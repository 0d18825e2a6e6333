#ifndef TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Joins what only moves elements: transpose, reshape, broadcast_in_dim, slice, reverse, pad, concatenate and
// dynamic_slice that do nothing go; two of one kind in a row become one; a broadcast is made in the shape in which it
// is wanted, and what it repeats is cut and turned before. Sizes are compared as expressions. Every element keeps its
// bits.
//
// Example: slice(broadcast_in_dim(x)) becomes broadcast_in_dim(slice(x)).
absl::StatusOr<bool> SimplifyLayout(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_SIMPLIFY_LAYOUT_H_
