#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Converts a tensor to a wider dtype again for slices of it, which are taken of the narrow tensor. For devices that
// fuse, after all passes that would join equal nodes.
//
// Example: y = convert(x); a = reduce(y); b = slice(y) becomes b = convert(slice(x)).
absl::StatusOr<bool> RepeatConverts(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_REPEAT_CONVERTS_H_
