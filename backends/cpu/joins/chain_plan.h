#ifndef TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_
#define TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "backends/cpu/joins/context.h"
#include "backends/cpu/joins/segment_blocks.h"
#include "engine/exec/backend/backend.h"

namespace tensord::cpu {

// Returns the numbers of equal contiguous blocks that a tensor can be cut into, up to so many, ascending.
std::vector<int64_t> BlockCounts(const ConcreteType& type, int64_t most);

// Segments that follow each other and run together, block by block: all segments of a block one after the other, so
// that values between them stay in the cache. Each reads only the pieces of its own block of the others' results, and
// nobody else reads any but the last one's. The number of blocks follows from sizes alone.
struct BlockPlan {
  // The place of a tensor: in the block's own memory, or in a slot, at its place in the whole.
  struct Place {
    bool passes = false;
    int64_t offset = 0;
    Slot slot = 0;
  };
  struct Segment {
    SegmentBlocks blocks;
    std::vector<Place> operands;
    std::vector<Place> results;
  };

  int64_t num_blocks = 1;
  std::vector<Segment> segments;
  std::vector<Slot> passing;  // slots that need no memory
  int64_t passing_bytes = 0;  // of one block
};

// Plans the longest chain that starts with the first of these segments; nothing if there is none that pays. Borrows the
// segments.
std::optional<BlockPlan> PlanChain(absl::Span<const SegmentInstruction> segments, const ChainLimits& limits);

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JOINS_CHAIN_PLAN_H_
