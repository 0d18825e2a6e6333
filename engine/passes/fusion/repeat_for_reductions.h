#ifndef TENSORD_ENGINE_PASSES_FUSION_REPEAT_FOR_REDUCTIONS_H_
#define TENSORD_ENGINE_PASSES_FUSION_REPEAT_FOR_REDUCTIONS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Computes cheap elementwise values again for a reduction along other axes than those of the kernel that they are in:
// one kernel reduces along one set of axes, and would store them for the other. Values count as cheap if they are made
// by few simple ops, conversions among them, of tensors that are smaller or narrower, or of two that are stored in any
// case. For devices that fuse. Leaves values without readers.
//
// Example: y = a[:, None] + b[None, :]; s = reduce(y) along 0; t = reduce(y) along 1 becomes two kernels that read a
// and b, and y is never stored.
absl::StatusOr<bool> RepeatForReductions(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_FUSION_REPEAT_FOR_REDUCTIONS_H_
