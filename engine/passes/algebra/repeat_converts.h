#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Converts a tensor to a wider dtype again for each kernel that reads it: reductions along other axes than the first
// one, and slices, which are taken of the narrow tensor. Each then reads the narrow tensor; if these were all of its
// readers, the wide one is never stored. For devices that fuse, after all passes that would join equal nodes.
//
// Example: y = convert(x); a = reduce(y) along 0; b = reduce(y) along 1 becomes b = reduce(convert(x)) along 1.
absl::StatusOr<bool> RepeatConverts(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_
