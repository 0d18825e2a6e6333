#ifndef TENSORD_ENGINE_EXEC_BACKEND_MEMORY_STATS_H_
#define TENSORD_ENGINE_EXEC_BACKEND_MEMORY_STATS_H_

#include <cstdint>

namespace tensord {

// The uses of a device's memory for tensors. Counts are since the start.
struct MemoryStats {
  int64_t in_use_bytes = 0;
  int64_t peak_in_use_bytes = 0;
  int64_t free_bytes = 0;  // kept for the next tensors
  int64_t allocated = 0;   // blocks that came from the system
  int64_t reused = 0;      // blocks that were there
  int64_t trimmed = 0;     // free blocks that were given back
  int64_t refused = 0;     // allocations for which there was no memory
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_MEMORY_STATS_H_
