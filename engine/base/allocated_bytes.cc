#include "engine/base/allocated_bytes.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace tensord {
namespace {

constinit thread_local AllocatedBytes* counting = nullptr;

// What malloc keeps before each block.
constexpr int64_t kHeader = sizeof(size_t);

void* CountedNew(size_t size) {
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (counting != nullptr && block != nullptr) {
    AllocatedBytes::Add(static_cast<int64_t>(malloc_usable_size(block)) + kHeader);
  }
  return block;
}

void CountedDelete(void* block) {
  if (counting != nullptr && block != nullptr) {
    AllocatedBytes::Add(-static_cast<int64_t>(malloc_usable_size(block)) - kHeader);
  }
  std::free(block);
}

}  // namespace

AllocatedBytes::AllocatedBytes() : outer_(counting) { counting = this; }

AllocatedBytes::~AllocatedBytes() {
  counting = outer_;
  Add(bytes_);
}

void AllocatedBytes::Add(int64_t bytes) {
  if (counting != nullptr) counting->bytes_ += bytes;
}

}  // namespace tensord

// Weak, so that a test may have its own. The other forms of new and delete call these; aligned blocks are not counted.
// Those that cannot fail are here too: a sanitizer has its own, whose blocks it would not have freed by these.
__attribute__((weak)) void* operator new(size_t size) {
  while (true) {
    if (void* const block = tensord::CountedNew(size)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
__attribute__((weak)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return tensord::CountedNew(size);
}
__attribute__((weak)) void operator delete(void* block) noexcept { tensord::CountedDelete(block); }
__attribute__((weak)) void operator delete(void* block, size_t) noexcept { tensord::CountedDelete(block); }
__attribute__((weak)) void operator delete(void* block, const std::nothrow_t&) noexcept {
  tensord::CountedDelete(block);
}
