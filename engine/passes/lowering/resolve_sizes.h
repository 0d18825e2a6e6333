#ifndef TENSORD_ENGINE_PASSES_LOWERING_RESOLVE_SIZES_H_
#define TENSORD_ENGINE_PASSES_LOWERING_RESOLVE_SIZES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Writes sizes that the graph's inputs decide as numbers and symbols, and asks inputs for the rest instead of other
// values, so that nothing is computed and no memory is kept for the sake of its shape alone. A pad_to_match of known
// sizes becomes a pad, or nothing.
absl::StatusOr<bool> ResolveSizes(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_RESOLVE_SIZES_H_
