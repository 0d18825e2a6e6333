#ifndef TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Slices the operands of elementwise ops instead of their results, where elementwise ops and reductions read the slices
// and nobody reads the whole: in the differences of a stencil, y[1:] - y[:-1] with y = a * b becomes a[1:] * b[1:] -
// a[:-1] * b[:-1], which is one kernel and stores no y. Up to eight slices of one value, and only as long as what is
// computed again costs less than storing and reading it: cheap ops, few of them; a value that is sliced once moves
// whatever its op is. For devices that fuse: to others slices of operands are copies.
absl::StatusOr<bool> HoistSlices(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_
