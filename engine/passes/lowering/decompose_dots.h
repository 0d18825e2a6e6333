#ifndef TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_
#define TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Gives every dot_general the form of a batched matrix product, with batch axes last: lhs [M, K, batch...] times
// rhs [K, N, batch...] gives [M, N, batch...]; M (N) is missing where lhs (rhs) has no free axis. Transposes and
// reshapes bring the operands into it, and a reshape takes the result out of it again.
//
// For backends that have nothing but such products. Off by default: it makes copies that a kernel that takes any axes
// mostly can do without.
absl::StatusOr<bool> DecomposeDots(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_LOWERING_DECOMPOSE_DOTS_H_
