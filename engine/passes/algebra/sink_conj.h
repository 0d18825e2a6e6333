#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Moves conjugations towards the values that they begin with, past ops that only move elements, and drops those that
// meet another conjugation, a real number or a part: conj(transpose(conj(x))) becomes transpose(x), and a broadcast
// conjugates its operand. An op is passed only if nobody else reads its result, and a slice never, since it leaves less
// to conjugate. Sums and products are not passed: if parts cancel, 0 would become -0, on the other side of a branch
// cut.
absl::StatusOr<bool> SinkConj(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_
