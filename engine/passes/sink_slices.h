#ifndef TENSORD_ENGINE_PASSES_SINK_SLICES_H_
#define TENSORD_ENGINE_PASSES_SINK_SLICES_H_

#include "engine/passes/pass.h"

namespace tensord {

// Computes what is only read in slices where it is read: x*y of which a stencil reads five shifted windows becomes five
// products of windows of x and y, so that one kernel computes all of it and the product never lies in memory. For
// devices that fuse, where a slice of an operand costs nothing. What a value is made of is computed once a window; that
// is done where the windows overlap and the work is small beside writing and reading the value, or where one window of
// at most half of it is read. Left alone: sizes that are symbols, steps, and values that somebody reads as a whole.
absl::StatusOr<bool> SinkSlices(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_SINK_SLICES_H_
