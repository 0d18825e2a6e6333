#ifndef TENSORD_ENGINE_PASSES_FUSION_FUSE_H_
#define TENSORD_ENGINE_PASSES_FUSION_FUSE_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Makes one node of every group of elementwise ops and reductions that fit into one kernel (fusion_groups.h), with the
// group as its body: elementwise ops, comparisons, selections and conversions over one shape, with the broadcasts,
// iotas, slices and small transposes that they read; reductions of that shape along the same axes, and the ops on their
// results. Does nothing if the device runs no such nodes.
//
// Example: softmax, x - max(x) exponentiated and divided by its sum, becomes one node with one operand and one result.
absl::StatusOr<bool> Fuse(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_FUSION_FUSE_H_
