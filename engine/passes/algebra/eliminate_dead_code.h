#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_DEAD_CODE_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_DEAD_CODE_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Drops the nodes whose results no output depends on. Inputs stay. Linear.
absl::StatusOr<bool> EliminateDeadCode(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_ELIMINATE_DEAD_CODE_H_
