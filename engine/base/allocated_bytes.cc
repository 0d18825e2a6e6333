#include "engine/base/allocated_bytes.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

// Sanitizers have operators of their own, and tell libraries from the rest by the callers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TENSORD_SANITIZED_NEW
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
int __sanitizer_get_ownership(const volatile void* block);
size_t __sanitizer_get_allocated_size(const volatile void* block);
}
#endif

namespace tensord {
namespace {

constinit thread_local AllocatedBytes* counting = nullptr;

#if defined(TENSORD_SANITIZED_NEW)

void OnMalloc(const volatile void* /*block*/, size_t size) { AllocatedBytes::Add(static_cast<int64_t>(size)); }
void OnFree(const volatile void* block) {
  if (counting == nullptr || __sanitizer_get_ownership(block) == 0) return;
  AllocatedBytes::Add(-static_cast<int64_t>(__sanitizer_get_allocated_size(block)));
}

[[maybe_unused]] const int hooks = __sanitizer_install_malloc_and_free_hooks(&OnMalloc, &OnFree);

#else

// The bytes that malloc keeps before each block.
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

#endif

}  // namespace

AllocatedBytes::AllocatedBytes() : outer_(counting) { counting = this; }

AllocatedBytes::~AllocatedBytes() {
  counting = outer_;
  Add(bytes_);
}

void AllocatedBytes::Add(int64_t bytes) {
  if (counting != nullptr) counting->bytes_ += bytes;
}

AllocatedBytes::Pause::Pause() : counting_(counting) { counting = nullptr; }

AllocatedBytes::Pause::~Pause() { counting = counting_; }

}  // namespace tensord

#if !defined(TENSORD_SANITIZED_NEW)

// Weak, so that a test may have its own. The other forms of new and delete call these; aligned blocks are not counted.
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

#endif
