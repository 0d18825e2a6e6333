#include "tests/hostcuda/host_fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Saves the callee's registers and the stack pointer, and goes on where the other one was saved. x86-64, System V.
extern "C" void HostCudaSwitch(void** save, void* load);
asm(R"(
.text
.globl HostCudaSwitch
.hidden HostCudaSwitch
.type HostCudaSwitch, @function
HostCudaSwitch:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.size HostCudaSwitch, .-HostCudaSwitch
)");

namespace tensord::cuda::host {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr size_t kRangeBytes = (kMaxThreads + 1) * kStackBytes;
constexpr int kSavedRegisters = 6;
constexpr uint64_t kStackEnd = 0x5a5a5a5a5a5a5a5a;  // at the far end of each stack

}  // namespace

ThreadPosition& Position() {
  thread_local ThreadPosition position;
  return position;
}

void PlaceThread(HostState* state, unsigned thread) {
  const HostDim3& size = state->block_size;
  state->thread = {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
}

Fibers& Fibers::Get() {
  thread_local Fibers fibers;
  return fibers;
}

Fibers::Fibers() : fibers_(kMaxThreads), words_(kMaxThreads) {
  void* range = mmap(nullptr, kRangeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  // What leaves the first stack faults; in front of the others are others' stacks, of which kStackEnd tells.
  if (range == MAP_FAILED || mprotect(range, kStackBytes, PROT_NONE) != 0) {
    std::perror("hostcuda: stacks of a block");
    std::abort();
  }
  stacks_ = static_cast<char*>(range) + kStackBytes;
}

Fibers::~Fibers() { munmap(stacks_ - kStackBytes, kRangeBytes); }

char* Fibers::stack(unsigned thread) const { return stacks_ + thread * kStackBytes; }

void Fibers::Enter() {
  Fibers& fibers = Get();
  fibers.body_.run(fibers.body_.arguments);
  Fiber& fiber = fibers.fibers_[fibers.current_];
  fiber.state = kDone;
  HostCudaSwitch(&fiber.stack_pointer, fibers.scheduler_);
}

void Fibers::Wait(HostWait kind) {
  Fiber& fiber = fibers_[current_];
  fiber.state = kind == kHostWarp ? kAtShuffle : kAtBarrier;
  ++(kind == kHostWarp ? fiber.shuffles : fiber.barriers);
  HostCudaSwitch(&fiber.stack_pointer, scheduler_);
}

void Fibers::Prepare(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    std::memcpy(stack(t), &kStackEnd, sizeof(kStackEnd));
    void** top = reinterpret_cast<void**>(stack(t) + kStackBytes) - 1;  // aligned as a call leaves it
    *top = nullptr;                                                     // Enter never returns
    *--top = reinterpret_cast<void*>(&Enter);
    for (int r = 0; r < kSavedRegisters; ++r) *--top = nullptr;
    fibers_[t] = {.stack_pointer = top};
  }
}

void Fibers::Resume(unsigned thread) {
  current_ = thread;
  const Fiber& fiber = fibers_[thread];
  PlaceThread(body_.state, thread);
  ThreadPosition& position = Position();
  position.thread = thread;
  position.barriers = fiber.barriers;
  position.shuffles = fiber.shuffles;
  HostCudaSwitch(&scheduler_, fiber.stack_pointer);
}

const char* Fibers::RunWarp(unsigned first, unsigned end, bool reverse) {
  do {
    for (unsigned i = 0; i < end - first; ++i) Resume(reverse ? end - 1 - i : first + i);
    for (unsigned t = first; t < end; ++t) {
      if (fibers_[t].state != fibers_[first].state) return "threads of a warp wait at different places";
      if (std::memcmp(stack(t), &kStackEnd, sizeof(kStackEnd)) != 0) return "a thread's local memory is too large";
    }
  } while (fibers_[first].state == kAtShuffle);
  return nullptr;
}

const char* Fibers::Run(const ThreadBody& body, unsigned threads, bool reverse) {
  body_ = body;
  Prepare(threads);
  const unsigned warps = (threads + kWarp - 1) / kWarp;
  while (true) {
    unsigned done = 0;
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned first = (reverse ? warps - 1 - i : i) * kWarp;
      const char* wrong = RunWarp(first, std::min(threads, first + kWarp), reverse);
      if (wrong != nullptr) return wrong;
      done += fibers_[first].state == kDone;
    }
    if (done == warps) return nullptr;
    if (done > 0) return "some threads of a block wait for others that have returned";
  }
}

}  // namespace tensord::cuda::host
