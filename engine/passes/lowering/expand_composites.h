#ifndef TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_
#define TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Writes an op as simpler ones if that pays. Beside elementwise ops or reductions, tril and triu become a select, a
// part of their kernel; alone they keep their own kernel, which skips zeros. A gather_dynamic_slice_sizes of known
// sizes becomes a gather.
absl::StatusOr<bool> ExpandComposites(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_EXPAND_COMPOSITES_H_
