#ifndef TENSORD_ENGINE_PASSES_LAYOUT_FOLD_TRANSPOSES_H_
#define TENSORD_ENGINE_PASSES_LAYOUT_FOLD_TRANSPOSES_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Keeps every value in the order in which it is stored, and rewrites its readers to read it so: a Transpose becomes a
// change of the order alone, elementwise ops work in any order, reductions, slices and contractions get their axes
// renamed (each op's `permute` facet says how). Transposes come back only where a reader cannot take the order: before
// a reshape, between operands stored differently, at an output; one that moves axes of size 1 alone, as a reshape. For
// row-major programs leaves and products are made with reversed axes, the order in which the results leave.
//
// Example: transpose(exp(transpose(x))) becomes exp(x); dot(transpose(a), b) contracts axis 0 of a instead of axis 1.
absl::StatusOr<bool> FoldTransposes(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LAYOUT_FOLD_TRANSPOSES_H_
