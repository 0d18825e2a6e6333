#include "engine/base/alternate_stack.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace tensord {
namespace {

// Beside the system's own part, the registers of the thread.
constexpr size_t kBytesOfHandlers = 32 << 10;

}  // namespace

AlternateStack::AlternateStack() {
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  const size_t guard = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes_ = guard + kBytesOfHandlers + static_cast<size_t>(std::max<long>(SIGSTKSZ, 8192));
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return;
  mprotect(memory, guard, PROT_NONE);  // what would overflow this one too
  stack_t stack{};
  stack.ss_sp = static_cast<char*>(memory) + guard;
  stack.ss_size = bytes_ - guard;
  if (sigaltstack(&stack, nullptr) == 0) {
    memory_ = memory;
  } else {
    munmap(memory, bytes_);
  }
}

AlternateStack::~AlternateStack() {
  if (memory_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
  munmap(memory_, bytes_);
}

}  // namespace tensord
