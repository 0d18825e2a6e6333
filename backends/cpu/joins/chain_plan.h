#ifndef TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_
#define TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_

#include <optional>

#include "absl/types/span.h"
#include "backends/cpu/joins/block_plan.h"
#include "backends/cpu/joins/context.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Plans the longest chain that starts with the first of these segments: each reads a result of one before it. A block
// is a contiguous piece of each result. Nothing if there is no chain that pays. Borrows the segments.
std::optional<BlockPlan> PlanChain(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_
