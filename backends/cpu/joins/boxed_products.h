#ifndef TENSORD_BACKENDS_CPU_JOINS_BOXED_PRODUCTS_H_
#define TENSORD_BACKENDS_CPU_JOINS_BOXED_PRODUCTS_H_

#include <optional>

#include "absl/types/span.h"
#include "backends/cpu/joins/block_plan.h"
#include "backends/cpu/joins/context.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Plans a contraction with one or two products (contractions, or fused maps) before it that make its operands for
// nobody else, by blocks. A block has one part of some axes of the contraction's result that all of these operands
// have, so that all its terms are there. The products make their boxes in memory of the block's own, and the
// contraction reads them there. Unlike in a chain, these axes need not be the slowest ones, and neither product reads
// the other.
//
// Starts with the first of these segments; nothing if there is none that pays. Sizes alone decide which axes are cut.
// Borrows the segments.
std::optional<BlockPlan> PlanProductJoin(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_BOXED_PRODUCTS_H_
