#ifndef TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATION_H_
#define TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATION_H_

// The language features that printed CUDA C++ needs to be an ordinary C++ source: a test includes this before it and
// runs the kernels on the processor. The threads of a block are fibers, one after the other from barrier to barrier;
// blocks follow each other. All threads of a block have to reach barriers and shuffles alike.

#include <math.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/tensor/half_types.h"

#define TENSORD_F16_CONVERSIONS
inline unsigned short F16Bits(float x) { return tensord::Float16(x).bits; }
inline float F16Value(unsigned short bits) { return static_cast<float>(tensord::Float16::FromBits(bits)); }

#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(threads)

template <typename To, typename From>
To BitsAs(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}
inline unsigned __float_as_uint(float x) { return BitsAs<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return BitsAs<float>(x); }
inline double __longlong_as_double(long long x) { return BitsAs<double>(x); }

struct CudaDimension {
  unsigned x = 0;
};
static CudaDimension threadIdx, blockIdx, gridDim;

namespace cuda_emulation {

inline constexpr size_t kStackBytes = 128 * 1024;
inline constexpr unsigned kRunning = 0, kDone = 1, kBarrier = 2, kShuffle = 3;

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  unsigned state = kRunning;
  unsigned shuffles = 0;
};

struct Block {
  std::vector<Fiber> fibers;
  ucontext_t scheduler;
  std::vector<unsigned> words[2];  // what the threads shuffle, in turns
  void (*body)(void*) = nullptr;
  void* arguments = nullptr;
};
static Block block;

inline void Wait(unsigned state) {
  const unsigned thread = threadIdx.x;
  block.fibers[thread].state = state;
  swapcontext(&block.fibers[thread].context, &block.scheduler);
}

inline void RunFiber() {
  block.body(block.arguments);
  block.fibers[threadIdx.x].state = kDone;
  swapcontext(&block.fibers[threadIdx.x].context, &block.scheduler);
}

// Null, or what the threads of the block have not done alike.
inline const char* RunBlock(unsigned threads) {
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = block.fibers[t];
    fiber.state = kRunning;
    fiber.shuffles = 0;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &RunFiber, 0);
  }
  while (true) {
    for (unsigned t = 0; t < threads; ++t) {
      threadIdx.x = t;
      swapcontext(&block.scheduler, &block.fibers[t].context);
      if (block.fibers[t].state != block.fibers[0].state) return "threads wait at different places";
    }
    if (block.fibers[0].state == kDone) return nullptr;
  }
}

// One launch. `arguments` has the kernel's pointers, and numbers as if they were some.
template <typename... A>
const char* Launch(void (*kernel)(A...), void** arguments, unsigned blocks, unsigned threads) {
  struct Call {
    void (*kernel)(A...);
    void** arguments;
  } call = {kernel, arguments};
  block.arguments = &call;
  block.body = [](void* opaque) {
    const Call& c = *static_cast<Call*>(opaque);
    [&c]<size_t... I>(std::index_sequence<I...>) { c.kernel((A)(c.arguments[I])...); }
    (std::index_sequence_for<A...>());
  };
  while (block.fibers.size() < threads) block.fibers.emplace_back().stack.resize(kStackBytes);
  for (std::vector<unsigned>& words : block.words) words.resize(block.fibers.size());
  gridDim.x = blocks;
  for (unsigned b = 0; b < blocks; ++b) {
    blockIdx.x = b;
    if (const char* error = RunBlock(threads)) return error;
  }
  return nullptr;
}

}  // namespace cuda_emulation

inline void __syncthreads() { cuda_emulation::Wait(cuda_emulation::kBarrier); }

inline unsigned __shfl_xor_sync(unsigned, unsigned word, int mask) {
  using cuda_emulation::block;
  const unsigned thread = threadIdx.x;
  // A thread is at most one shuffle ahead of the others.
  std::vector<unsigned>& words = block.words[block.fibers[thread].shuffles++ % 2];
  words[thread] = word;
  cuda_emulation::Wait(cuda_emulation::kShuffle);
  return words[thread ^ static_cast<unsigned>(mask)];
}

#endif  // TENSORD_TESTS_TESTLIB_CUDA_CUDA_EMULATION_H_
