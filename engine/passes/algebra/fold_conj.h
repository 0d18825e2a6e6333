#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONJ_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONJ_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Lets a dot_general conjugate its operands itself (lhs_conj, rhs_conj) if they are conjugations, also behind ops
// without other readers that only move elements. Kernels conjugate while they read, mostly for nothing.
//
// Example: dot(reshape(conj(x)), y) becomes dot(reshape(x), y) with lhs_conj.
absl::StatusOr<bool> FoldConj(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_FOLD_CONJ_H_
