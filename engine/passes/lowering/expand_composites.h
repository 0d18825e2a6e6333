#ifndef TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_
#define TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Writes an op as simpler ones where that serves: tril and triu beside elementwise ops or reductions as a select, which
// becomes part of their kernel; alone they keep their own kernel, which skips what is zero. A
// gather_dynamic_slice_sizes of known sizes is a gather.
absl::StatusOr<bool> ExpandComposites(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_
