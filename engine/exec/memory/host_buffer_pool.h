#ifndef TENSORD_ENGINE_EXEC_MEMORY_HOST_BUFFER_POOL_H_
#define TENSORD_ENGINE_EXEC_MEMORY_HOST_BUFFER_POOL_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/backend/memory_stats.h"
#include "engine/exec/memory/block_observer.h"
#include "engine/exec/memory/huge_page_heap.h"
#include "engine/exec/memory/memory_budget.h"

namespace tensord {

// Host memory for tensors, kept for reuse when it is released, because touching a fresh page costs more than most
// kernels. Blocks come in size classes of at most 1/4 waste, aligned to 64 bytes, in huge pages from 64 KiB up.
// Bounded: allocations beyond `limit_bytes` in use are refused with OUT_OF_MEMORY, which gives the limit's public name.
// At most `keep_bytes` of free blocks are kept, the largest going first, and never more than fit under the limit beside
// the memory in use; with 0 none are kept. Pools may share a limit. What one keeps does not give way to what another
// uses. Thread-safe; buffers may outlive the pool's owner, not the process's.
class HostBufferPool {
 public:
  // `observer` is told of blocks with pages of their own, from 2 MiB up; null: nobody is.
  static std::shared_ptr<HostBufferPool> Create(int64_t limit_bytes, int64_t keep_bytes,
                                                std::string limit_name = "limit_bytes",
                                                std::shared_ptr<BlockObserver> observer = nullptr);
  // Makes one that shares its limit.
  static std::shared_ptr<HostBufferPool> Create(std::shared_ptr<MemoryBudget> budget, int64_t keep_bytes,
                                                std::string limit_name,
                                                std::shared_ptr<BlockObserver> observer = nullptr);
  ~HostBufferPool();

  int64_t limit_bytes() const { return budget_->limit_bytes(); }
  // Changes the bound of kept bytes; blocks beyond it go at once.
  void SetKeepBytes(int64_t keep_bytes);
  int64_t keep_bytes() const;

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes);

  // Counts memory that others take, of the same machine, as in use: OUT_OF_MEMORY if there is no room. Until it is
  // returned.
  absl::Status Reserve(int64_t bytes);
  void Unreserve(int64_t bytes);

  MemoryStats stats() const;

 private:
  static constexpr int kNumClasses = 256;  // sizes of blocks, four to a power of two

  struct Trimmed {
    void* address = nullptr;
    int size_class = 0;
  };

  HostBufferPool(std::shared_ptr<MemoryBudget> budget, int64_t keep_bytes, std::string limit_name,
                 std::shared_ptr<BlockObserver> observer);
  void Release(void* address, int size_class);
  // Returns null if the system has none.
  void* AllocateBlock(int64_t bytes);
  // Tells the observer, before a block's pages go.
  void TellOfReturn(void* block, int64_t bytes) const;
  // Fails with OUT_OF_MEMORY, counted.
  absl::Status RefuseLocked(int64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RefuseForSystemLocked(int64_t size_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t MostFreeLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(keep_bytes_, limit_bytes() - budget_->used_bytes());
  }
  // Gives back the memory beyond the kept bound.
  void Trim() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<MemoryBudget> budget_;
  const std::string limit_name_;
  const std::shared_ptr<BlockObserver> observer_;
  std::weak_ptr<HostBufferPool> self_;
  mutable Mutex mutex_;
  int64_t keep_bytes_ ABSL_GUARDED_BY(mutex_);
  std::array<std::vector<void*>, kNumClasses> free_ ABSL_GUARDED_BY(mutex_);
  MemoryStats stats_ ABSL_GUARDED_BY(mutex_);
  HugePageHeap heap_;  // Take and Give under mutex_
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_MEMORY_HOST_BUFFER_POOL_H_
