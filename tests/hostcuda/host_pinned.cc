#include "tests/hostcuda/host_pinned.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace tensord::cuda::host {
namespace {

constexpr size_t kPinnedAlignment = 4096;

}  // namespace

PinnedMemory& PinnedMemory::Get() {
  static PinnedMemory* const memory = new PinnedMemory;
  return *memory;
}

CuResult PinnedMemory::Allocate(size_t bytes, void** memory) {
  if (bytes == 0 || memory == nullptr) return kCuInvalidValue;
  if (bytes > (size_t{1} << 40)) return kCuOutOfMemory;
  void* const made =
      std::aligned_alloc(kPinnedAlignment, (bytes + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment);
  if (made == nullptr) return kCuOutOfMemory;
  std::memset(made, 0xCD, bytes);
  std::lock_guard lock(mutex_);
  ranges_[static_cast<char*>(made)] = {bytes, true, true, &Context::Get()};
  *memory = made;
  return kCuSuccess;
}

CuResult PinnedMemory::Free(void* memory) {
  std::lock_guard lock(mutex_);
  const auto it = ranges_.find(static_cast<char*>(memory));
  if (it == ranges_.end() || !it->second.is_ours) return kCuInvalidValue;
  ranges_.erase(it);
  std::free(memory);
  return kCuSuccess;
}

// Whole pages: CUDA pins no less, and some versions refuse what begins or ends within one.
CuResult PinnedMemory::Register(void* memory, size_t bytes, unsigned flags) {
  if (memory == nullptr || bytes == 0 || (flags & ~kCuMemHostRegisterPortable) != 0) return kCuInvalidValue;
  if (reinterpret_cast<uintptr_t>(memory) % kPinnedAlignment != 0 || bytes % kPinnedAlignment != 0) {
    return kCuInvalidValue;
  }
  const char* const begin = static_cast<char*>(memory);
  std::lock_guard lock(mutex_);
  const auto next = ranges_.lower_bound(begin);
  if (next != ranges_.end() && next->first < begin + bytes) return kCuHostMemoryAlreadyRegistered;
  if (next != ranges_.begin() && std::prev(next)->first + std::prev(next)->second.bytes > begin) {
    return kCuHostMemoryAlreadyRegistered;
  }
  ranges_[begin] = {bytes, false, flags == kCuMemHostRegisterPortable, &Context::Get()};
  return kCuSuccess;
}

CuResult PinnedMemory::Unregister(void* memory) {
  std::lock_guard lock(mutex_);
  const auto it = ranges_.find(static_cast<char*>(memory));
  if (it == ranges_.end() || it->second.is_ours) return kCuHostMemoryNotRegistered;
  ranges_.erase(it);
  return kCuSuccess;
}

void PinnedMemory::Clear(const Context& context) {
  std::lock_guard lock(mutex_);
  for (auto it = ranges_.begin(); it != ranges_.end();) {
    if (it->second.context != &context) {
      ++it;
      continue;
    }
    if (it->second.is_ours) std::free(const_cast<char*>(it->first));
    it = ranges_.erase(it);
  }
}

bool PinnedMemory::Has(const void* memory, size_t bytes) {
  const char* const begin = static_cast<const char*>(memory);
  std::lock_guard lock(mutex_);
  auto it = ranges_.upper_bound(begin);
  if (it == ranges_.begin()) return false;
  --it;
  const Range& range = it->second;
  return begin + bytes <= it->first + range.bytes && (range.is_portable || range.context == &Context::Get());
}

long PinnedMemory::live() {
  std::lock_guard lock(mutex_);
  return static_cast<long>(ranges_.size());
}

}  // namespace tensord::cuda::host
