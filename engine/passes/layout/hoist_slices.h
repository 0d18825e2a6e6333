#ifndef TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Slices the operands of elementwise ops instead of their results, if elementwise ops and reductions read the slices
// and nobody reads the whole. In the differences of a stencil, y[1:] - y[:-1] with y = a * b becomes a[1:] * b[1:] -
// a[:-1] * b[:-1], which is one kernel and stores no y. Takes up to eight slices of one value, as long as the repeated
// ops cost less than storing and reading the value: cheap ops, few of them. A value that is sliced once moves whatever
// its op is. For devices that fuse: to others slices of operands are copies.
absl::StatusOr<bool> HoistSlices(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_HOIST_SLICES_H_
