#include "engine/exec/memory/host_buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord {
namespace {

constexpr int64_t kSmallest = 64;  // a line of the cache
// Smaller blocks the allocator has warm.
constexpr int64_t kSmallestInHeap = int64_t{64} << 10;
// Addresses of the heap; the allocator has the blocks that do not fit.
constexpr int64_t kHeapBytes = int64_t{16} << 30;
constexpr int64_t kAddressSpace = int64_t{1} << 56;  // no process has more; the sizes of classes fit far beyond it

// Four classes a power of two: 64, 80, 96, 112, 128, 160, ….
int ClassOf(int64_t bytes) {
  if (bytes <= kSmallest) return 0;
  const uint64_t last = static_cast<uint64_t>(bytes - 1);
  const int power = std::bit_width(last) - 1;  // 2^power <= bytes - 1
  const int quarter = static_cast<int>(last >> (power - 2) & 3);
  return (power - 6) * 4 + quarter + 1;
}

int64_t BytesOf(int size_class) {
  const int power = size_class / 4 + 6, quarter = size_class % 4;
  return (int64_t{1} << power) + (int64_t{quarter} << (power - 2));
}

// Large blocks have huge pages of their own. Smaller blocks share some, unless they are so small that the allocator has
// them warm.
bool HasOwnPages(int64_t bytes) { return bytes >= kHugePage; }
bool SharesPages(int64_t bytes) { return bytes >= kSmallestInHeap && bytes < kHugePage; }

void* AllocateFromSystem(int64_t bytes) {
  const bool huge = HasOwnPages(bytes);
  const size_t alignment = huge ? static_cast<size_t>(kHugePage) : 64;
  const size_t size = (static_cast<size_t>(bytes) + alignment - 1) / alignment * alignment;
  void* const block = std::aligned_alloc(alignment, size);
  if (block != nullptr && huge) madvise(block, size, MADV_HUGEPAGE);
  return block;
}

}  // namespace

std::shared_ptr<HostBufferPool> HostBufferPool::Create(int64_t limit_bytes, int64_t keep_bytes, std::string limit_name,
                                                       std::shared_ptr<BlockObserver> observer) {
  return Create(std::make_shared<MemoryBudget>(limit_bytes), keep_bytes, std::move(limit_name), std::move(observer));
}

std::shared_ptr<HostBufferPool> HostBufferPool::Create(std::shared_ptr<MemoryBudget> budget, int64_t keep_bytes,
                                                       std::string limit_name,
                                                       std::shared_ptr<BlockObserver> observer) {
  std::shared_ptr<HostBufferPool> pool(
      new HostBufferPool(std::move(budget), keep_bytes, std::move(limit_name), std::move(observer)));
  pool->self_ = pool;
  return pool;
}

HostBufferPool::HostBufferPool(std::shared_ptr<MemoryBudget> budget, int64_t keep_bytes, std::string limit_name,
                               std::shared_ptr<BlockObserver> observer)
    : budget_(std::move(budget)),
      limit_name_(std::move(limit_name)),
      observer_(std::move(observer)),
      keep_bytes_(keep_bytes),
      heap_(keep_bytes > 0 ? std::min(limit_bytes(), kHeapBytes) : 0) {}  // pages not kept would be torn again

HostBufferPool::~HostBufferPool() {
  for (int c = 0; c < kNumClasses; ++c) {
    for (void* const block : free_[static_cast<size_t>(c)]) {
      TellOfReturn(block, BytesOf(c));
      if (!heap_.Owns(block)) std::free(block);
    }
  }
}

void HostBufferPool::TellOfReturn(void* block, int64_t bytes) const {
  if (observer_ != nullptr && HasOwnPages(bytes)) observer_->OnReturn(block, bytes);
}

void* HostBufferPool::AllocateBlock(int64_t bytes) {
  if (SharesPages(bytes)) {
    MutexLock lock(&mutex_);
    if (void* const block = heap_.Take(bytes); block != nullptr) return block;
  }
  return AllocateFromSystem(bytes);
}

absl::Status HostBufferPool::RefuseLocked(int64_t size_bytes) {
  ++stats_.refused;
  const int64_t in_use = size_bytes > limit_bytes() ? 0 : budget_->used_bytes();
  return RefuseLimit(
      Refusal::kOutOfMemory, limit_name_, limit_bytes(), in_use + size_bytes,
      absl::StrCat("bytes of tensors in memory, ", in_use, " of them in use already; send less work at once"));
}

absl::Status HostBufferPool::RefuseForSystemLocked(int64_t size_bytes) {
  ++stats_.refused;
  return Refuse(Refusal::kOutOfMemory, absl::StrCat("the system has no memory for ", size_bytes, " bytes"));
}

absl::StatusOr<std::shared_ptr<Buffer>> HostBufferPool::Allocate(int64_t size_bytes) {
  if (size_bytes > limit_bytes() || size_bytes > kAddressSpace) {
    MutexLock lock(&mutex_);
    return size_bytes > limit_bytes() ? RefuseLocked(size_bytes) : RefuseForSystemLocked(size_bytes);
  }
  const int size_class = ClassOf(size_bytes);
  const int64_t block_bytes = BytesOf(size_class);
  void* block = nullptr;
  bool is_full = false;  // of blocks that are kept
  {
    MutexLock lock(&mutex_);
    if (!budget_->Take(block_bytes)) return RefuseLocked(size_bytes);
    stats_.in_use_bytes += block_bytes;
    stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
    std::vector<void*>& blocks = free_[static_cast<size_t>(size_class)];
    if (!blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
      stats_.free_bytes -= block_bytes;
      ++stats_.reused;
    } else {
      ++stats_.allocated;
    }
    is_full = stats_.free_bytes > MostFreeLocked();
  }
  if (is_full) Trim();
  if (block == nullptr) {
    block = AllocateBlock(block_bytes);
  } else if (observer_ != nullptr && HasOwnPages(block_bytes)) {
    observer_->OnReuse(block, block_bytes);
  }
  if (block == nullptr) {
    MutexLock lock(&mutex_);
    stats_.in_use_bytes -= block_bytes;
    budget_->Give(block_bytes);
    return RefuseForSystemLocked(size_bytes);
  }
  return std::make_shared<Buffer>(block, size_bytes, [pool = self_.lock(), size_class](void* address, int64_t) {
    pool->Release(address, size_class);
  });
}

absl::Status HostBufferPool::Reserve(int64_t bytes) {
  bool is_full = false;
  {
    MutexLock lock(&mutex_);
    if (!budget_->Take(bytes)) {
      const int64_t used = budget_->used_bytes();
      return RefuseLimit(Refusal::kOutOfMemory, limit_name_, limit_bytes(), used + bytes,
                         absl::StrCat("bytes of tensors and shared memory, ", used, " of them in use already"));
    }
    is_full = stats_.free_bytes > MostFreeLocked();
  }
  if (is_full) Trim();
  return absl::OkStatus();
}

void HostBufferPool::Unreserve(int64_t bytes) { budget_->Give(bytes); }

void HostBufferPool::Release(void* address, int size_class) {
  {
    MutexLock lock(&mutex_);
    const int64_t bytes = BytesOf(size_class);
    stats_.in_use_bytes -= bytes;
    stats_.free_bytes += bytes;
    budget_->Give(bytes);
    free_[static_cast<size_t>(size_class)].push_back(address);
    if (stats_.free_bytes <= MostFreeLocked()) return;
  }
  Trim();
}

// Giving pages back to the system takes long: nobody should wait for it.
void HostBufferPool::Trim() {
  std::vector<Trimmed> trimmed;
  {
    MutexLock lock(&mutex_);
    const int64_t most = MostFreeLocked();
    for (size_t c = kNumClasses; stats_.free_bytes > most && c-- > 0;) {
      while (stats_.free_bytes > most && !free_[c].empty()) {
        trimmed.push_back({free_[c].back(), static_cast<int>(c)});
        free_[c].pop_back();
        stats_.free_bytes -= BytesOf(static_cast<int>(c));
        ++stats_.trimmed;
      }
    }
  }
  for (const Trimmed& block : trimmed) {
    const int64_t bytes = BytesOf(block.size_class);
    TellOfReturn(block.address, bytes);
    // The allocator may keep freed memory: TuneAllocator.
    if (bytes >= kSmallestInHeap) HugePageHeap::ReturnPages(block.address, bytes);
    if (!heap_.Owns(block.address)) {
      std::free(block.address);
      continue;
    }
    MutexLock lock(&mutex_);
    heap_.Give(block.address, bytes);
  }
}

void HostBufferPool::SetKeepBytes(int64_t keep_bytes) {
  {
    MutexLock lock(&mutex_);
    keep_bytes_ = keep_bytes;
  }
  Trim();
}

int64_t HostBufferPool::keep_bytes() const {
  MutexLock lock(&mutex_);
  return keep_bytes_;
}

MemoryStats HostBufferPool::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace tensord
