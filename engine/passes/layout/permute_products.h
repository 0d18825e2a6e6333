#ifndef TENSORD_ENGINE_PASSES_LAYOUT_PERMUTE_PRODUCTS_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_PERMUTE_PRODUCTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Lets a dot_general write its result in the order of its only reader, a Transpose (the attribute result_permutation),
// so that the result goes through memory once: a gate applied to the middle axis of a state, a contraction whose result
// interleaves the free axes of both operands.
absl::StatusOr<bool> PermuteProducts(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_PERMUTE_PRODUCTS_H_
