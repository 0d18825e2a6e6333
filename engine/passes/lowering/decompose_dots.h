#ifndef TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_
#define TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Gives every dot_general the form of a batched matrix product, with batch axes last: lhs [M, K, batch...] times rhs
// [K, N, batch...] gives [M, N, batch...]; M (N) is missing if lhs (rhs) has no free axis. Transposes and reshapes
// bring the operands into it, and a reshape takes the result out of it again.
//
// For backends that have only such products. Off by default: it makes copies that a kernel for any axes mostly does not
// need.
absl::StatusOr<bool> DecomposeDots(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_
