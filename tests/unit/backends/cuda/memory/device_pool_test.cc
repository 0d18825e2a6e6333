#include "backends/cuda/memory/device_pool.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

class DevicePoolTest : public CudaTest {
 protected:
  std::shared_ptr<DevicePool> Pool(const std::shared_ptr<Context>& context, int64_t limit_bytes,
                                   bool uses_virtual_memory = true) {
    auto pool = DevicePool::Create(
        context, {.limit_bytes = limit_bytes, .limit_name = "most", .uses_virtual_memory = uses_virtual_memory});
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }
  // Returns the bytes of the device's memory that are taken.
  static int64_t Taken(Context* context) {
    const auto free_bytes = context->FreeBytes();
    EXPECT_TRUE(free_bytes.ok()) << free_bytes.status();
    return (int64_t{4} << 30) - *free_bytes;
  }

  static constexpr int64_t kGranule = 2 * kMiB;
};

uintptr_t AddressOf(const std::shared_ptr<Buffer>& buffer) { return reinterpret_cast<uintptr_t>(buffer->address()); }

// Random pieces against a model: none overlaps another, and all count.
TEST_F(DevicePoolTest, PiecesAreApart) {
  const std::shared_ptr<Context> context = Entered();
  for (const bool uses_virtual_memory : {true, false}) {
    const std::shared_ptr<DevicePool> pool = Pool(context, 64 * kMiB, uses_virtual_memory);
    std::mt19937_64 random(uses_virtual_memory ? 1 : 2);
    std::map<uintptr_t, std::shared_ptr<Buffer>> live;
    int64_t refused = 0;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 100 == 0) pool->Trim();
      if (random() % 3 == 0 && !live.empty()) {
        live.erase(std::next(live.begin(), static_cast<int64_t>(random() % live.size())));
        continue;
      }
      const int64_t size = static_cast<int64_t>(random() % (random() % 4 == 0 ? 9 * kMiB : 5000));
      const auto buffer = pool->Allocate(size);
      if (!buffer.ok()) {
        EXPECT_EQ(ReasonOf(buffer.status()), "OUT_OF_MEMORY");
        ++refused;
        continue;
      }
      EXPECT_EQ((*buffer)->size_bytes(), size);
      if (uses_virtual_memory) {
        EXPECT_LE(Taken(context.get()), 64 * kMiB);
      }
      EXPECT_EQ(AddressOf(*buffer) % 256, 0u);
      const auto next = live.lower_bound(AddressOf(*buffer));
      if (next != live.end()) {
        EXPECT_LE(AddressOf(*buffer) + static_cast<uintptr_t>(size), next->first);
      }
      if (next != live.begin()) {
        const auto& [before, other] = *std::prev(next);
        EXPECT_LE(before + static_cast<uintptr_t>(other->size_bytes()), AddressOf(*buffer));
        EXPECT_NE(before, AddressOf(*buffer));
      }
      live.emplace(AddressOf(*buffer), *buffer);
      // All of it is memory.
      const auto fill = [&](CuAddress at, size_t bytes) {
        CuStream stream = nullptr;
        if (step % 50 != 0 || bytes == 0) return;
        EXPECT_EQ(context->driver().cuStreamCreate(&stream, kCuStreamNonBlocking), kCuSuccess);
        EXPECT_EQ(context->driver().cuMemsetD8Async(at, 7, bytes, stream), kCuSuccess);
        EXPECT_EQ(context->driver().cuStreamSynchronize(stream), kCuSuccess);
        EXPECT_EQ(context->driver().cuStreamDestroy_v2(stream), kCuSuccess);
      };
      fill(AddressOf(*buffer), static_cast<size_t>(size));
    }
    int64_t bytes = 0;
    for (const auto& [address, buffer] : live) bytes += (std::max<int64_t>(buffer->size_bytes(), 1) + 511) / 512 * 512;
    const MemoryStats stats = pool->stats();
    EXPECT_EQ(stats.in_use_bytes, bytes);
    EXPECT_EQ(stats.refused, refused);
    EXPECT_GT(refused, 0) << "the limit was met";
    EXPECT_LE(stats.peak_in_use_bytes, 64 * kMiB);
    live.clear();
    EXPECT_EQ(pool->stats().in_use_bytes, 0);
    pool->Trim();
    EXPECT_EQ(pool->stats().free_bytes, 0);
  }
}

TEST_F(DevicePoolTest, EqualRunsFindEqualAddresses) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 256 * kMiB);
  const auto weights = pool->Allocate(10 * kMiB);
  const auto run = [&] {
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<uintptr_t> addresses;
    for (const int64_t size : {3 * kMiB, int64_t{100}, 40 * kMiB, int64_t{0}, 7 * kMiB}) {
      buffers.push_back(*pool->Allocate(size));
      addresses.push_back(AddressOf(buffers.back()));
    }
    return addresses;
  };
  const std::vector<uintptr_t> first = run();
  const int64_t allocated = pool->stats().allocated;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(), first);
  EXPECT_EQ(pool->stats().allocated, allocated) << "nothing more of the device";
  pool->Trim();
  EXPECT_EQ(run(), first) << "the addresses stay where the memory went";
}

TEST_F(DevicePoolTest, TheLimitNamesItself) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 3 * kMiB);
  const auto first = pool->Allocate(2 * kMiB);
  ASSERT_TRUE(first.ok());
  for (const int64_t more : {2 * kMiB, std::numeric_limits<int64_t>::max()}) {
    const absl::Status refused = pool->Allocate(more).status();
    EXPECT_EQ(ReasonOf(refused), "OUT_OF_MEMORY");
    EXPECT_THAT(std::string(refused.message()), HasSubstr("most"));
  }
  EXPECT_EQ(pool->stats().refused, 2);
  EXPECT_TRUE(pool->Allocate(kMiB).ok());
}

TEST_F(DevicePoolTest, WhatStaysKeepsLittleMemory) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 256 * kMiB);
  for (const int64_t large : {20 * kMiB, 3 * kMiB}) {
    std::vector<std::shared_ptr<Buffer>> temporaries, kept;
    for (int i = 0; i < 10; ++i) {
      temporaries.push_back(*pool->Allocate(large));
      kept.push_back(*pool->Allocate(8));
    }
    temporaries.clear();
    pool->Trim();
    EXPECT_LE(Taken(context.get()), large > 16 * kMiB ? kGranule : 10 * kGranule) << large;
    const auto all = pool->Allocate(230 * kMiB);
    EXPECT_TRUE(all.ok()) << all.status();
    EXPECT_LE(Taken(context.get()), 256 * kMiB);
  }
}

// Four granules, each with a piece in use, are all that may be.
TEST_F(DevicePoolTest, MemoryBetweenPiecesIsWithinTheLimit) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 8 * kMiB);
  std::vector<std::shared_ptr<Buffer>> temporaries, kept;
  for (int i = 0; i < 4; ++i) {
    temporaries.push_back(*pool->Allocate(kGranule - 512));
    kept.push_back(*pool->Allocate(8));
  }
  temporaries.clear();
  const absl::Status refused = pool->Allocate(4 * kMiB).status();
  EXPECT_EQ(ReasonOf(refused), "OUT_OF_MEMORY");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("12582912 is beyond the limit most = 8388608"));
  EXPECT_EQ(pool->stats().refused, 1);
  EXPECT_EQ(pool->stats().in_use_bytes, 4 * 512);
  EXPECT_EQ(Taken(context.get()), 8 * kMiB);
  for (int i = 0; i < 4; ++i) {
    temporaries.push_back(*pool->Allocate(kGranule - 512));
    EXPECT_EQ(Taken(context.get()), 8 * kMiB);
  }
  temporaries.clear();
  kept.resize(2);
  EXPECT_TRUE(pool->Allocate(4 * kMiB).ok());
  EXPECT_LE(Taken(context.get()), 8 * kMiB);
}

TEST_F(DevicePoolTest, EachEndHelpsTheOther) {
  const std::shared_ptr<Context> context = Entered();
  for (const bool large_first : {true, false}) {
    const std::shared_ptr<DevicePool> pool = Pool(context, 24 * kMiB);
    const auto one = pool->Allocate(large_first ? 17 * kMiB : 7 * kMiB);
    const auto other = pool->Allocate(large_first ? 7 * kMiB : 17 * kMiB);
    EXPECT_TRUE(one.ok() && other.ok()) << other.status();
    EXPECT_EQ(Taken(context.get()), 24 * kMiB);
  }
}

TEST_F(DevicePoolTest, ALimitBelowAGranuleServes) {
  const std::shared_ptr<Context> context = Entered();
  for (const int64_t limit : {int64_t{512}, int64_t{1000}, kMiB, kGranule + 1}) {
    const std::shared_ptr<DevicePool> pool = Pool(context, limit);
    for (int i = 0; i < 3; ++i) {
      const auto piece = pool->Allocate(limit / 512 * 512);
      EXPECT_TRUE(piece.ok()) << limit << ": " << piece.status();
      EXPECT_EQ(ReasonOf(pool->Allocate(limit).status()), "OUT_OF_MEMORY") << limit;
      EXPECT_LE(Taken(context.get()), limit > kGranule ? 2 * kGranule : kGranule) << limit;
    }
  }
}

TEST_F(DevicePoolTest, NoMoreGoesBackThanIsNeeded) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 64 * kMiB);
  pool->Allocate(40 * kMiB)->reset();
  std::vector<std::shared_ptr<Buffer>> pieces;
  for (int i = 0; i < 8; ++i) {
    pieces.push_back(*pool->Allocate(4 * kMiB));
    EXPECT_LE(Taken(context.get()), 64 * kMiB);
  }
  EXPECT_EQ(pool->stats().trimmed, 2);
  EXPECT_EQ(pool->stats().free_bytes, 32 * kMiB) << "of 40, all but two extents of 4";
}

// As many as are promised to runs, whatever holes others have left.
TEST_F(DevicePoolTest, LargePiecesFillNineTenths) {
  const std::shared_ptr<Context> context = Entered();
  constexpr int64_t kLimit = 256 * kMiB;
  const std::shared_ptr<DevicePool> pool = Pool(context, kLimit);
  std::mt19937_64 random(4);
  std::vector<std::shared_ptr<Buffer>> pieces;
  const auto drop_one = [&] { pieces.erase(pieces.begin() + static_cast<int64_t>(random() % pieces.size())); };
  for (int step = 0; step < 150; ++step) {
    const int64_t size = 17 * kMiB + static_cast<int64_t>(random() % static_cast<uint64_t>(23 * kMiB));
    while (pool->stats().in_use_bytes + size > kLimit / 10 * 9) drop_one();
    if (!pieces.empty() && random() % 3 == 0) drop_one();
    const auto piece = pool->Allocate(size);
    ASSERT_TRUE(piece.ok()) << step << ": " << piece.status();
    EXPECT_LE(Taken(context.get()), kLimit);
    pieces.push_back(*piece);
  }
}

TEST_F(DevicePoolTest, SmallPiecesByTheHundredThousand) {
  const std::shared_ptr<Context> context = Entered();
  const std::shared_ptr<DevicePool> pool = Pool(context, 64 * kMiB);
  const long calls = hostCudaCalls("cuMemCreate");
  std::mt19937_64 random(3);
  std::vector<std::shared_ptr<Buffer>> pieces(100000);
  for (std::shared_ptr<Buffer>& piece : pieces) piece = *pool->Allocate(8);
  EXPECT_EQ(hostCudaCalls("cuMemCreate") - calls, (100000 * 512 + kGranule - 1) / kGranule);
  std::shuffle(pieces.begin(), pieces.end(), random);
  pieces.resize(50000);
  pool->Trim();
  pieces.resize(100000);
  for (std::shared_ptr<Buffer>& piece : pieces) {
    if (piece == nullptr) piece = *pool->Allocate(8);
  }
  EXPECT_EQ(hostCudaCalls("cuMemCreate") - calls, (100000 * 512 + kGranule - 1) / kGranule);
  std::vector<uintptr_t> addresses;
  for (const std::shared_ptr<Buffer>& piece : pieces) addresses.push_back(AddressOf(piece));
  std::sort(addresses.begin(), addresses.end());
  EXPECT_EQ(std::unique(addresses.begin(), addresses.end()), addresses.end());
  EXPECT_EQ(pool->stats().in_use_bytes, 100000 * 512);
}

// The device may have less than the limit, since others use it too.
TEST_F(DevicePoolTest, MemoryThatLiesIdleGoesBeforeARefusal) {
  const std::shared_ptr<Context> context = Entered();
  hostCudaSet("MEMORY", "50331648");  // 48 MiB
  const std::shared_ptr<DevicePool> pool = Pool(context, 256 * kMiB);
  auto low = pool->Allocate(16 * kMiB), high = pool->Allocate(16 * kMiB);
  ASSERT_TRUE(low.ok() && high.ok());
  low->reset();
  EXPECT_EQ(pool->stats().free_bytes, 16 * kMiB);
  const auto large = pool->Allocate(32 * kMiB);  // behind the high one
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_GT(pool->stats().trimmed, 0);
  const absl::Status refused = pool->Allocate(16 * kMiB).status();
  EXPECT_EQ(ReasonOf(refused), "OUT_OF_MEMORY");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cuMemCreate"));
  high->reset();
  EXPECT_TRUE(pool->Allocate(16 * kMiB).ok());
}

TEST_F(DevicePoolTest, BuffersKeepTheirPool) {
  std::shared_ptr<Buffer> buffer;
  {
    const std::shared_ptr<Context> context = Entered();
    buffer = *Pool(context, kMiB)->Allocate(1000);
  }
  EXPECT_GT(hostCudaLiveMemory(), 0);
  std::thread([&] { buffer.reset(); }).join();  // on a thread that has entered no context
  EXPECT_EQ(hostCudaLiveMemory(), 0);
}

TEST_F(DevicePoolTest, EachCallMayFail) {
  const std::shared_ptr<Context> context = Entered();
  for (const char* function : {"cuMemCreate", "cuMemMap", "cuMemRelease", "cuMemSetAccess"}) {
    const std::shared_ptr<DevicePool> pool = Pool(context, 256 * kMiB);
    for (long n = 1;; ++n) {
      const long calls = hostCudaCalls(function);
      hostCudaFail(function, n, kCuUnknown);
      const absl::Status status = pool->Allocate(100 * kMiB).status();
      hostCudaFail("", 0, 0);
      if (hostCudaCalls(function) - calls < n) break;
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << function << " " << n << ": " << status;
      EXPECT_EQ(pool->stats().in_use_bytes, 0);
      pool->Trim();
      EXPECT_EQ(pool->stats().free_bytes, 0) << function << " " << n;
    }
    EXPECT_TRUE(pool->Allocate(100 * kMiB).ok()) << function;
  }
  for (const char* function : {"cuDeviceGetAttribute", "cuMemGetAllocationGranularity", "cuMemAddressReserve"}) {
    hostCudaFail(function, 1, kCuUnknown);
    EXPECT_FALSE(DevicePool::Create(context, {.limit_bytes = kMiB}).ok()) << function;
  }
  const std::shared_ptr<DevicePool> pool = Pool(context, 256 * kMiB);
  hostCudaFail("cuMemCreate", 2, kCuOutOfMemory);
  EXPECT_TRUE(pool->Allocate(100 * kMiB).ok()) << "tried again after the idle memory went";
}

}  // namespace
}  // namespace tensord::cuda
