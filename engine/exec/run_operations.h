#ifndef TENSORD_ENGINE_EXEC_RUN_OPERATIONS_H_
#define TENSORD_ENGINE_EXEC_RUN_OPERATIONS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/exec/backend.h"

namespace tensord {

// Operations on numbers that one run of the instruction takes, about: of a fused one as many as it has, in each point
// of its space; of others what their OpDef says.
double OperationsOf(const BoundInstruction& instruction);

// LIMIT_EXCEEDED where all of these take more operations than `most`; names the node of the one that takes most.
absl::Status CheckOperations(absl::Span<const SegmentInstruction> segments, int64_t most);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_RUN_OPERATIONS_H_
