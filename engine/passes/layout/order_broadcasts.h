#ifndef TENSORD_ENGINE_PASSES_LAYOUT_ORDER_BROADCASTS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_ORDER_BROADCASTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Transposes a tensor before it is repeated, if kernels would read it across its columns once for each repetition:
// copied into their order once, it is read along them. Small tensors are transposed as they are read; the pass fuse
// decides that. Tensors that are repeated a few times only are left alone. For devices that fuse, after the passes that
// join layout ops.
//
// Example: broadcast_in_dim(x: f64[64,64,16]) {dimensions = [1, 0, 2], shape = [64,64,16,8]} becomes that of
// transpose(x), with dimensions = [0, 1, 2].
absl::StatusOr<bool> OrderBroadcasts(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_ORDER_BROADCASTS_H_
