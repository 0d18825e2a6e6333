#ifndef TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_
#define TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_

#include "engine/passes/rewriting/pass.h"

namespace tensord {

// Moves conjugations towards the values that they begin with, past what only moves elements, and drops those that meet
// another, a real number or a part: conj(transpose(conj(x))) becomes transpose(x), and a broadcast conjugates what it
// repeats. An op is passed only where nobody else reads its result, and a slice never, since it leaves less to
// conjugate. Sums and products are not passed: where parts cancel, 0 would become -0, which is the other side of a
// branch cut.
absl::StatusOr<bool> SinkConj(Graph* graph, const PassOptions& options);

}  // namespace tensord

#endif  // TENSORD_ENGINE_PASSES_ALGEBRA_SINK_CONJ_H_
