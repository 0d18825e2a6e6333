// Memory of the host that ends while memory of a device is taken, or memory of the host is pinned: each allocation
// fails once. By replacing the process's operator new: a test binary of its own.
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "backends/cuda/device/pinned_blocks.h"
#include "backends/cuda/memory/device_pool.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace {

thread_local int64_t allocations_left = 0;  // of this thread, with the one that fails; 0: none fails

}  // namespace

[[gnu::noinline]] void* operator new(size_t size) {
  if (allocations_left > 0 && --allocations_left == 0) throw std::bad_alloc();
  void* const block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

namespace tensord::cuda {
namespace {

// A function of the driver in whose calls no allocation fails.
template <auto kFunction>
struct Spared;
template <typename R, typename... Arguments, R (*Driver::*kFunction)(Arguments...)>
struct Spared<kFunction> {
  static inline R (*original)(Arguments...) = nullptr;
  static R Call(Arguments... arguments) {
    const int64_t left = std::exchange(allocations_left, 0);
    const R result = original(arguments...);
    allocations_left = left;
    return result;
  }
};

class NoMemoryTest : public CudaTest {
 protected:
  NoMemoryTest() : driver_(libraries_->driver()) {
#define TENSORD_SPARE(name, result, arguments)       \
  if (driver_.name != nullptr) {                     \
    Spared<& Driver::name>::original = driver_.name; \
    driver_.name = &Spared<&Driver::name>::Call;     \
  }
    TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_SPARE)
#undef TENSORD_SPARE
    context_ = *Context::Create(&driver_, 0);
    EXPECT_TRUE(context_->Enter().ok());
  }
  void TearDown() override {
    context_ = nullptr;
    CudaTest::TearDown();
  }

  // Does it with each of its allocations failing, and then with none. Returns how many there are.
  template <typename F>
  static int64_t WithEachFailing(const F& work) {
    for (int64_t n = 1;; ++n) {
      SCOPED_TRACE(n);
      allocations_left = n;
      work();
      if (std::exchange(allocations_left, 0) > 0) return n - 1;
    }
  }

  Driver driver_;
  std::shared_ptr<Context> context_;
};

TEST_F(NoMemoryTest, APoolLosesNoMemoryOfItsDevice) {
  for (const bool uses_virtual_memory : {true, false}) {
    for (const int64_t bytes : {int64_t{100}, 8 * kMiB}) {
      SCOPED_TRACE(bytes);
      const std::shared_ptr<DevicePool> pool =
          *DevicePool::Create(context_, {.limit_bytes = 64 * kMiB, .uses_virtual_memory = uses_virtual_memory});
      const long before = hostCudaLiveMemory();  // addresses
      const int64_t allocations = WithEachFailing([&] {
        int64_t left = 0;
        try {
          const auto buffer = pool->Allocate(bytes);
          left = std::exchange(allocations_left, 0);
          EXPECT_TRUE(buffer.ok()) << buffer.status();
        } catch (const std::bad_alloc&) {
        }
        EXPECT_EQ(pool->stats().in_use_bytes, 0);
        pool->Trim();
        EXPECT_EQ(hostCudaLiveMemory(), before);
        allocations_left = left;
      });
      EXPECT_GT(allocations, 1);
      // All of the addresses are there.
      for (int i = 0; i < 8; ++i) EXPECT_TRUE(pool->Allocate(60 * kMiB).ok());
    }
  }
}

TEST_F(NoMemoryTest, BlocksArePinnedOrNot) {
  constexpr int64_t kBlock = 6 * kMiB;
  PinnedBlocks pinned({.most_bytes = kBlock});
  pinned.Add(context_);
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock), &std::free);
  for (const bool fails : {false, true}) {
    const int64_t allocations = WithEachFailing([&] {
      int64_t left = std::exchange(allocations_left, 0);
      if (fails) hostCudaFail("cuMemHostRegister_v2", 1, kCuOutOfMemory);
      allocations_left = left;
      pinned.OnReuse(block.get(), kBlock);
      left = std::exchange(allocations_left, 0);
      hostCudaFail("", 0, 0);
      const bool is_pinned = hostCudaLivePinned() > 0;
      EXPECT_EQ(pinned.Find(block.get(), kBlock) != nullptr, is_pinned);
      EXPECT_EQ(pinned.stats().bytes, is_pinned ? kBlock : 0);
      pinned.OnReturn(block.get(), kBlock);
      EXPECT_EQ(pinned.stats().bytes, 0);
      EXPECT_EQ(hostCudaLivePinned(), 0);
      allocations_left = left;
    });
    EXPECT_GT(allocations, 0);
  }
  pinned.OnReuse(block.get(), kBlock);
  EXPECT_EQ(pinned.stats().bytes, kBlock);
  pinned.Remove(*context_);  // nobody is counted as using it
  EXPECT_EQ(hostCudaLivePinned(), 0);
}

}  // namespace
}  // namespace tensord::cuda
