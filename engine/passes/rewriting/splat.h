#ifndef TENSORD_ENGINE_PASSES_REWRITING_SPLAT_H_
#define TENSORD_ENGINE_PASSES_REWRITING_SPLAT_H_

#include "engine/passes/rewriting/graph_rewriter.h"

namespace tensord {

// Values of which every element is one known number.

// Returns the number as a literal of rank 0, where the value is a constant of rank 0 or one spread by broadcast_in_dim.
// The value may have any shape, and no element.
LiteralPtr SplatOf(const GraphRewriter& graph, ValueId value);

// Tells whether all sizes of a type are known once the arguments are, so that a broadcast_in_dim can be made of that
// type.
bool IsExact(const TensorType& type);

// Returns the number in the type's shape, which must be exact.
ValueId AddSplat(absl::string_view name, Literal number, const TensorType& type, GraphRewriter* graph);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_REWRITING_SPLAT_H_
