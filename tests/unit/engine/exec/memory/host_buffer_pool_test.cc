#include "engine/exec/memory/host_buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "engine/base/allocator_tuning.h"
#include "engine/base/refusal.h"
#include "engine/exec/memory/huge_page_heap.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

constexpr int64_t kPlenty = int64_t{1} << 40;

std::shared_ptr<Buffer> Take(HostBufferPool* pool, int64_t bytes) {
  absl::StatusOr<std::shared_ptr<Buffer>> buffer = pool->Allocate(bytes);
  EXPECT_TRUE(buffer.ok()) << buffer.status();
  return buffer.ok() ? *std::move(buffer) : nullptr;
}

void ExpectOutOfMemory(HostBufferPool* pool, int64_t bytes) {
  const auto buffer = pool->Allocate(bytes);
  ASSERT_FALSE(buffer.ok()) << bytes;
  EXPECT_EQ(DetailOf(buffer.status())->reason, "OUT_OF_MEMORY");
}

TEST(HostBufferPool, BlocksAreAlignedAndWasteAtMostAQuarter) {
  const auto pool = HostBufferPool::Create(kPlenty, 0);
  std::vector<int64_t> sizes = {0, 1, 63, 64, 65};
  for (int power = 6; power < 24; ++power) {
    for (int64_t quarter = 4; quarter < 8; ++quarter) {
      for (int64_t off : {-1, 0, 1}) sizes.push_back((quarter << (power - 2)) + off);
    }
  }
  for (int64_t size : sizes) {
    const std::shared_ptr<Buffer> buffer = Take(pool.get(), size);
    ASSERT_NE(buffer, nullptr);
    EXPECT_NE(buffer->address(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->address()) % 64, 0u) << size;
    EXPECT_EQ(buffer->size_bytes(), size);
    std::memset(buffer->address(), 0xff, static_cast<size_t>(size));
    const int64_t block = pool->stats().in_use_bytes;
    EXPECT_GE(block, size);
    if (size > 64) {
      EXPECT_LE(4 * block, 5 * size) << size;
    }
  }
  EXPECT_EQ(pool->stats().in_use_bytes, 0);
  EXPECT_EQ(pool->stats().free_bytes, 0);
}

TEST(HostBufferPool, ReusesWhatWasReleased) {
  const auto pool = HostBufferPool::Create(kPlenty, 1 << 20);
  void* const address = Take(pool.get(), 1000)->address();
  EXPECT_EQ(pool->stats().free_bytes, 1024);
  const std::shared_ptr<Buffer> again = Take(pool.get(), 900);  // of the same class
  EXPECT_EQ(again->address(), address);
  EXPECT_EQ(again->size_bytes(), 900);
  EXPECT_EQ(pool->stats().reused, 1);
  EXPECT_EQ(pool->stats().allocated, 1);
  EXPECT_EQ(pool->stats().free_bytes, 0);
  EXPECT_EQ(pool->stats().in_use_bytes, 1024);
  EXPECT_NE(Take(pool.get(), 1000)->address(), address);
}

TEST(HostBufferPool, RefusesBeyondItsLimitAndRecovers) {
  const auto pool = HostBufferPool::Create(4096, 4096);
  ExpectOutOfMemory(pool.get(), 4097);
  ExpectOutOfMemory(pool.get(), std::numeric_limits<int64_t>::max());
  {
    const std::shared_ptr<Buffer> half = Take(pool.get(), 2048), quarter = Take(pool.get(), 1024);
    ExpectOutOfMemory(pool.get(), 1025);
    const std::shared_ptr<Buffer> rest = Take(pool.get(), 1024);
    EXPECT_EQ(pool->stats().in_use_bytes, 4096);
    ExpectOutOfMemory(pool.get(), 0);
  }
  EXPECT_EQ(pool->stats().in_use_bytes, 0);
  EXPECT_NE(Take(pool.get(), 4096), nullptr);
  EXPECT_EQ(pool->stats().refused, 4);
}

TEST(HostBufferPool, WhatOthersReserveIsInUse) {
  const auto pool = HostBufferPool::Create(4096, 4096, "cpu.tensor_bytes");
  ASSERT_TRUE(pool->Reserve(1024).ok());
  ExpectOutOfMemory(pool.get(), 3073);
  std::shared_ptr<Buffer> half = Take(pool.get(), 2048);
  const RefusalDetail full = *DetailOf(pool->Reserve(1025));
  EXPECT_EQ(full.reason, "OUT_OF_MEMORY");
  EXPECT_EQ(full.limit, "cpu.tensor_bytes");
  EXPECT_EQ(full.actual_value, 1024 + 2048 + 1025);
  half.reset();
  EXPECT_EQ(pool->stats().free_bytes, 2048);
  ASSERT_TRUE(pool->Reserve(2048).ok());
  EXPECT_EQ(pool->stats().free_bytes, 0) << "what is kept makes room";
  pool->Unreserve(3072);
  EXPECT_NE(Take(pool.get(), 4096), nullptr);
}

TEST(HostBufferPool, PoolsShareALimit) {
  const auto budget = std::make_shared<MemoryBudget>(4096);
  const auto one = HostBufferPool::Create(budget, 4096, "cpu.tensor_bytes");
  const auto other = HostBufferPool::Create(budget, 0, "cpu.tensor_bytes");
  std::shared_ptr<Buffer> half = Take(one.get(), 2048);
  ASSERT_TRUE(other->Reserve(1024).ok());
  ExpectOutOfMemory(other.get(), 1025);
  std::shared_ptr<Buffer> rest = Take(other.get(), 1024);
  EXPECT_EQ(budget->used_bytes(), 4096);
  EXPECT_EQ(DetailOf(one->Allocate(64).status())->actual_value, 4096 + 64);
  half.reset();
  EXPECT_EQ(budget->used_bytes(), 2048) << "what is kept counts for nobody else";
  half = Take(other.get(), 2048);
  half.reset();
  rest.reset();
  other->Unreserve(1024);
  EXPECT_EQ(budget->used_bytes(), 0);
}

TEST(HostBufferPool, WhatIsKeptAndWhatIsInUseAreWithinTheLimitTogether) {
  const auto pool = HostBufferPool::Create(4096, 4096);
  Take(pool.get(), 2048).reset();
  EXPECT_EQ(pool->stats().free_bytes, 2048);
  const std::shared_ptr<Buffer> other = Take(pool.get(), 3072);
  EXPECT_EQ(pool->stats().free_bytes, 0);
}

TEST(HostBufferPool, ARefusalNamesTheLimit) {
  const auto pool = HostBufferPool::Create(4096, 0, "cpu.tensor_bytes");
  const std::shared_ptr<Buffer> half = Take(pool.get(), 2048);
  const RefusalDetail full = *DetailOf(pool->Allocate(2049).status());
  EXPECT_EQ(full.limit, "cpu.tensor_bytes");
  EXPECT_EQ(full.limit_value, 4096);
  EXPECT_EQ(full.actual_value, 2048 + 2049);
  const RefusalDetail never = *DetailOf(pool->Allocate(4097).status());
  EXPECT_EQ(never.limit, "cpu.tensor_bytes");
  EXPECT_EQ(never.actual_value, 4097);
}

TEST(HostBufferPool, WhatItMayKeepChanges) {
  const auto pool = HostBufferPool::Create(kPlenty, 1 << 20);
  std::shared_ptr<Buffer> small = Take(pool.get(), 512), large = Take(pool.get(), 2048);
  small.reset();
  large.reset();
  EXPECT_EQ(pool->stats().free_bytes, 2560);
  pool->SetKeepBytes(600);
  EXPECT_EQ(pool->stats().free_bytes, 512) << "at once";
  EXPECT_EQ(pool->keep_bytes(), 600);
  Take(pool.get(), 2048).reset();
  EXPECT_EQ(pool->stats().free_bytes, 512);
  pool->SetKeepBytes(1 << 20);
  Take(pool.get(), 2048).reset();
  EXPECT_EQ(pool->stats().free_bytes, 2560);
}

TEST(HostBufferPool, AnUnlimitedPoolRefusesWhatNoAddressSpaceHolds) {
  const auto pool = HostBufferPool::Create(std::numeric_limits<int64_t>::max(), 0);
  for (int64_t size : {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max() / 2 + 2,
                       (int64_t{7} << 60) + 1, int64_t{1} << 62}) {
    ExpectOutOfMemory(pool.get(), size);
  }
  EXPECT_EQ(pool->stats().in_use_bytes, 0);
}

TEST(HostBufferPool, KeepsAtMostWhatItMayTheLargestGoFirst) {
  const auto pool = HostBufferPool::Create(kPlenty, 2048);
  std::shared_ptr<Buffer> small = Take(pool.get(), 512), middle = Take(pool.get(), 1024),
                          large = Take(pool.get(), 2048);
  void* const small_address = small->address();
  small.reset();
  middle.reset();
  EXPECT_EQ(pool->stats().free_bytes, 1536);
  large.reset();  // 3584 would be free: the largest goes
  EXPECT_EQ(pool->stats().free_bytes, 1536);
  EXPECT_EQ(Take(pool.get(), 512)->address(), small_address);
  EXPECT_EQ(pool->stats().reused, 1);
}

TEST(HostBufferPool, KeepsNothingWhereItMayKeepNothing) {
  const auto pool = HostBufferPool::Create(kPlenty, 0);
  for (int i = 0; i < 3; ++i) {
    const std::shared_ptr<Buffer> a = Take(pool.get(), 0), b = Take(pool.get(), 100000);
    EXPECT_EQ(pool->stats().free_bytes, 0);
  }
  const MemoryStats stats = pool->stats();
  EXPECT_EQ(stats.free_bytes, 0);
  EXPECT_EQ(stats.in_use_bytes, 0);
  EXPECT_EQ(stats.peak_in_use_bytes, 64 + 114688);
  EXPECT_EQ(stats.allocated, 6);
  EXPECT_EQ(stats.reused, 0);
  EXPECT_EQ(stats.trimmed, 6);
}

TEST(HostBufferPool, ASmallPoolKeepsWhatFits) {
  constexpr int64_t kKeep = 64 << 10;
  const auto pool = HostBufferPool::Create(kPlenty, kKeep);
  std::mt19937_64 random(1);
  std::vector<std::shared_ptr<Buffer>> held;
  for (int i = 0; i < 2000; ++i) {
    held.push_back(Take(pool.get(), static_cast<int64_t>(random() % (3 * kKeep))));
    if (held.size() > 5) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    ASSERT_LE(pool->stats().free_bytes, kKeep);
  }
  held.clear();
  const MemoryStats stats = pool->stats();
  EXPECT_LE(stats.free_bytes, kKeep);
  EXPECT_GT(stats.reused, 0);
  EXPECT_EQ(stats.allocated + stats.reused, 2000);
  EXPECT_GE(stats.allocated, stats.trimmed);
}

TEST(HostBufferPool, BuffersOutliveTheOwner) {
  std::shared_ptr<HostBufferPool> pool = HostBufferPool::Create(kPlenty, 1 << 20);
  const std::shared_ptr<Buffer> buffer = Take(pool.get(), 100);
  pool.reset();
  std::memset(buffer->address(), 1, 100);
}

TEST(HostBufferPool, ThreadsNeverShareABlock) {
  const auto pool = HostBufferPool::Create(kPlenty, 1 << 16);
  std::vector<std::thread> threads;
  std::atomic<int> clashes{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, &clashes, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      std::vector<std::shared_ptr<Buffer>> held;
      const auto intact = [t](const Buffer& buffer) {
        const char* const bytes = static_cast<const char*>(buffer.address());
        for (int64_t i = 0; i < buffer.size_bytes(); ++i) {
          if (bytes[i] != static_cast<char>(t + 1)) return false;
        }
        return true;
      };
      for (int i = 0; i < 2000; ++i) {
        std::shared_ptr<Buffer> buffer = *pool->Allocate(static_cast<int64_t>(random() % 5000));
        std::memset(buffer->address(), t + 1, static_cast<size_t>(buffer->size_bytes()));
        held.push_back(std::move(buffer));
        if (held.size() < 8) continue;
        const size_t victim = random() % held.size();
        clashes += intact(*held[victim]) ? 0 : 1;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clashes, 0);
  const MemoryStats stats = pool->stats();
  EXPECT_EQ(stats.in_use_bytes, 0);
  EXPECT_LE(stats.free_bytes, 1 << 16);
  EXPECT_EQ(stats.reused + stats.allocated, 4 * 2000);
}

// Writes down what it is told, and looks whether a block that returns still has what was written to it.
class Watcher final : public BlockObserver {
 public:
  void OnReuse(void* block, int64_t bytes) override { told.emplace_back('+', block, bytes); }
  void OnReturn(void* block, int64_t bytes) override {
    told.emplace_back('-', block, bytes);
    EXPECT_EQ(static_cast<char*>(block)[bytes - 1], 1);
  }
  std::vector<std::tuple<char, void*, int64_t>> told;
};

TEST(HostBufferPool, AnObserverIsToldOfLargeBlocksThatComeBackAndGo) {
  constexpr int64_t kBlock = int64_t{3} << 20;
  const auto watcher = std::make_shared<Watcher>();
  auto pool = HostBufferPool::Create(kPlenty, 4 * kBlock, "limit", watcher);
  const auto take = [&](int64_t bytes) {
    std::shared_ptr<Buffer> buffer = Take(pool.get(), bytes);
    std::memset(buffer->address(), 1, static_cast<size_t>(bytes));
    return buffer;
  };
  for (int i = 0; i < 2; ++i) take(kHugePage / 2);
  EXPECT_TRUE(watcher->told.empty()) << "smaller ones share their pages";
  void* const block = take(kBlock)->address();
  EXPECT_TRUE(watcher->told.empty());
  EXPECT_EQ(take(kBlock)->address(), block);
  using Told = std::vector<std::tuple<char, void*, int64_t>>;
  EXPECT_EQ(watcher->told, (Told{{'+', block, kBlock}}));
  pool->SetKeepBytes(0);
  EXPECT_EQ(watcher->told, (Told{{'+', block, kBlock}, {'-', block, kBlock}}));
  pool->SetKeepBytes(4 * kBlock);
  watcher->told.clear();
  void* const last = take(kBlock)->address();
  pool.reset();
  EXPECT_EQ(watcher->told, (Told{{'-', last, kBlock}}));
}

// Counts the 4 KiB pages of a block that was freed.
int64_t PagesInMemory(void* block, int64_t bytes) {
  std::vector<unsigned char> pages(static_cast<size_t>(bytes / 4096));
  if (mincore(block, static_cast<size_t>(bytes), pages.data()) != 0) return 0;  // nor are its addresses
  return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; });
}

TEST(HostBufferPool, MemoryThatIsNotKeptIsTheSystemsEvenWhereTheAllocatorKeepsWhatItHas) {
  TuneAllocator();
  constexpr int64_t kBlock = int64_t{8} << 20;
  const auto pool = HostBufferPool::Create(kPlenty, kBlock);
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(Take(pool.get(), kBlock));
    blocks.push_back(buffers.back()->address());
    std::memset(blocks.back(), 1, kBlock);
  }
  buffers.clear();
  EXPECT_EQ(pool->stats().free_bytes, kBlock);
  int64_t pages = 0;
  for (void* const block : blocks) pages += PagesInMemory(block, kBlock);
  EXPECT_LE(pages, (kBlock + 8 * kHugePage) / 4096)
      << "the block that is kept, and of each what the allocator writes, which may fill a huge page";
}

}  // namespace
}  // namespace tensord
