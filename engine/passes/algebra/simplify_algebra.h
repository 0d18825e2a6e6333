#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_SIMPLIFY_ALGEBRA_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_SIMPLIFY_ALGEBRA_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Rewrites arithmetic by laws that hold bit for bit on every value of the dtype, NaN, infinities and both zeros
// included, but for the sign and payload of a NaN. So x*1 on floats becomes x, and x+0 does not (-0 + 0 is 0). One
// exception gives better results than the contract asks for: the power 2 of a real is a product, rounded once.
//
// Neutral and absorbing elements, ops that undo or repeat each other, conversions there and back, selects that are
// decided, reductions over axes of size 1. A dot_general that adds nothing up (no contracted axis, or of size 1)
// becomes a product of broadcasts, which can be computed along with its neighbours.
absl::StatusOr<bool> SimplifyAlgebra(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_SIMPLIFY_ALGEBRA_H_
