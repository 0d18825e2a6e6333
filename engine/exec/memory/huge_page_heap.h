#ifndef TENSORD_ENGINE_EXEC_MEMORY_HUGE_PAGE_HEAP_H_
#define TENSORD_ENGINE_EXEC_MEMORY_HUGE_PAGE_HEAP_H_

#include <cstdint>

#include "engine/exec/memory/memory_holes.h"

namespace tensord {

inline constexpr int64_t kHugePage = int64_t{2} << 20;  // bytes

// Blocks that are smaller than a huge page, side by side in huge pages: the first touch of a page costs the same for
// 2 MiB as for 200 KiB in pages of 4 KiB. Owns a range of addresses; memory comes when it is touched. One Take or Give
// at a time; the rest is thread-safe.
class HugePageHeap {
 public:
  // Has no memory if the system refuses so many addresses, and under sanitizers, which watch the allocator's blocks.
  explicit HugePageHeap(int64_t bytes);
  ~HugePageHeap();
  HugePageHeap(const HugePageHeap&) = delete;
  HugePageHeap& operator=(const HugePageHeap&) = delete;

  // Aligned to 64 bytes as long as all sizes are multiples of that; null if there is no room.
  void* Take(int64_t bytes);
  bool Owns(const void* block) const;
  // Returns the pages to the system, before Give.
  static void ReturnPages(void* block, int64_t bytes);
  void Give(void* block, int64_t bytes);

 private:
  char* base_ = nullptr;
  int64_t bytes_ = 0;
  MemoryHoles holes_;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_HUGE_PAGE_HEAP_H_
