#ifndef TENSORD_ENGINE_EXEC_MEMORY_BLOCK_OBSERVER_H_
#define TENSORD_ENGINE_EXEC_MEMORY_BLOCK_OBSERVER_H_

#include <cstdint>

namespace tensord {

// A listener that a pool tells of its blocks with pages of their own, so that they can be pinned for a device. Called
// without the pool's lock, by the thread that alone has the block. Thread-safe.
class BlockObserver {
 public:
  virtual ~BlockObserver() = default;

  // A block that was kept is given out again: all of it is memory by now, and it is likely to come back.
  virtual void OnReuse(void* block, int64_t bytes) = 0;
  // A block goes back to the system when this returns.
  virtual void OnReturn(void* block, int64_t bytes) = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_BLOCK_OBSERVER_H_
