#include "engine/exec/memory/huge_page_heap.h"

#include <sys/mman.h>

#include <cstddef>
#include <optional>

#include "engine/base/rounding.h"

namespace tensord {
namespace {

constexpr int64_t kPage = 4096;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsWatched = true;
#else
constexpr bool kIsWatched = false;
#endif

}  // namespace

HugePageHeap::HugePageHeap(int64_t bytes) {
  bytes = RoundDown(bytes, kHugePage);
  if (kIsWatched || bytes <= 0) return;
  // One page more, so that the range has an end to begin at a huge page.
  const size_t mapped = static_cast<size_t>(bytes + kHugePage);
  void* const range = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return;
  const int64_t first = static_cast<int64_t>(reinterpret_cast<uintptr_t>(range));
  const int64_t before = RoundUp(first, kHugePage) - first, after = kHugePage - before;
  base_ = static_cast<char*>(range) + before;
  bytes_ = bytes;
  if (before > 0) munmap(range, static_cast<size_t>(before));
  if (after > 0) munmap(base_ + bytes_, static_cast<size_t>(after));
  madvise(base_, static_cast<size_t>(bytes_), MADV_HUGEPAGE);
}

HugePageHeap::~HugePageHeap() {
  if (base_ != nullptr) munmap(base_, static_cast<size_t>(bytes_));
}

void* HugePageHeap::Take(int64_t bytes) {
  if (base_ == nullptr) return nullptr;
  const std::optional<int64_t> offset = holes_.TakeBelow(bytes, bytes_);
  return offset.has_value() ? base_ + *offset : nullptr;
}

bool HugePageHeap::Owns(const void* block) const {
  const char* const address = static_cast<const char*>(block);
  return base_ != nullptr && base_ <= address && address < base_ + bytes_;
}

void HugePageHeap::ReturnPages(void* block, int64_t bytes) {
  const int64_t address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(block));
  const int64_t begin = RoundUp(address, kPage), end = RoundDown(address + bytes, kPage);
  if (begin < end) {
    madvise(static_cast<char*>(block) + (begin - address), static_cast<size_t>(end - begin), MADV_DONTNEED);
  }
}

void HugePageHeap::Give(void* block, int64_t bytes) { holes_.Free(static_cast<char*>(block) - base_, bytes); }

}  // namespace tensord
