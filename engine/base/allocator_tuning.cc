#include "engine/base/allocator_tuning.h"

#include <malloc.h>

namespace tensord {

void TuneAllocator() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_ARENA_MAX, 1);  // the other arenas return what is larger than 64 MiB all the same
}

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace tensord
