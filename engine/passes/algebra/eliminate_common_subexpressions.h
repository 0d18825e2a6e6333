#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_COMMON_SUBEXPRESSIONS_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_COMMON_SUBEXPRESSIONS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Computes the common value of equal nodes once: nodes of one op with equal attributes and the same operands, in any
// order for a commutative op; constants count by their values. Two dynamic_truncate stay apart even if they are equal,
// since each names a size of its own (docs/why/0008-sizes-that-the-run-decides.md). Linear, in bytes of constants too.
//
// Example: exp(x) + exp(x) computes one exp.
absl::StatusOr<bool> EliminateCommonSubexpressions(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_COMMON_SUBEXPRESSIONS_H_
