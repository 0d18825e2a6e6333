#ifndef TENSORD_ENGINE_EXEC_MEMORY_BLOCK_PLACEMENT_H_
#define TENSORD_ENGINE_EXEC_MEMORY_BLOCK_PLACEMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"

namespace tensord {

inline constexpr int64_t kBufferAlignment = 64;

// Rounds `bytes` up to kBufferAlignment; nothing if that overflows.
std::optional<int64_t> AlignBytes(int64_t bytes);

// Memory that exists anyway, and that nobody else needs in the instructions first_free … last_free.
struct FreeRegion {
  int64_t bytes = 0;
  int64_t most_bytes = 0;  // what it may be made to have where that saves more elsewhere
  int32_t first_free = 0;
  int32_t last_free = 0;
};

// A block that needs a place from instruction `birth` to instruction `death`, both included.
struct MemoryBlock {
  int64_t bytes = 0;
  int32_t birth = 0;
  int32_t death = 0;
};

struct BlockPlace {
  int32_t region = -1;  // -1: in the arena
  int64_t offset = 0;   // a multiple of kBufferAlignment
};

struct BlockPlacement {
  std::vector<BlockPlace> places;     // by block
  std::vector<int64_t> region_bytes;  // by region: FreeRegion::bytes, or what it has to have
  int64_t arena_bytes = 0;
};

// Places blocks in the regions if they fit and the others in an arena, so that no two that live at the same time
// overlap and the arena is small. Several ways are tried until one needs little more than the bytes alive at once: as
// the program runs, each block in the smallest hole; the same from its end; the largest first; the largest and longest
// first; and these with regions that grow. Takes n log n: the slower ways give up after some dozen steps a block.
// Nothing if a sum overflows, or the work is stopped.
std::optional<BlockPlacement> PlaceBlocks(absl::Span<const FreeRegion> regions, int32_t num_instructions,
                                          absl::Span<const MemoryBlock> blocks);

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_BLOCK_PLACEMENT_H_
