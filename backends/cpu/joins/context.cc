#include "backends/cpu/joins/context.h"

#include "backends/cpu/machine/cache_sizes.h"

namespace tensord::cpu {
namespace {

// So many that threads end about together, whatever the number of them.
constexpr int64_t kPlentyOfBlocks = 16;
constexpr int64_t kLastLevelPart = 8;  // cores may share it

}  // namespace

ChainLimits MachineChainLimits() {
  const CacheSizes& caches = MachineCacheSizes();
  return {.block_bytes = caches.l2,
          .large_block_bytes = caches.last_level / kLastLevelPart,
          .least_bytes = caches.l2,
          .least_join_bytes = caches.last_level / kLastLevelPart,
          .least_read_bytes = caches.last_level,
          .least_blocks = kPlentyOfBlocks};
}

}  // namespace tensord::cpu
