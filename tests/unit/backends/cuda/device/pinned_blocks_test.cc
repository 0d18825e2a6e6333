#include "backends/cuda/device/pinned_blocks.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "gmock/gmock.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

// A backend, or two, whose host memory is pinned where it comes back.
class PinnedBlocksTest : public CudaTest {
 protected:
  static constexpr int64_t kBytes = 5 * kMiB + 5;  // the pool has 6 MiB for them
  static constexpr int64_t kBlock = 6 * kMiB;

  void Make(int64_t most_bytes = int64_t{1} << 30) {
    pinned_ = std::make_shared<PinnedBlocks>(PinnedBlocks::Options{
        .most_bytes = most_bytes,
        .on_first_refusal = [this](const absl::Status& refusal) { refusals_.emplace_back(refusal.message()); }});
    pool_ = HostBufferPool::Create(int64_t{1} << 30, 64 * kMiB, "host", pinned_);
    backend_ = Made(0, counts_);
  }
  std::unique_ptr<Backend> Made(int ordinal, std::shared_ptr<DeviceCounts> counts) {
    auto backend = MakeCudaBackend({.libraries = libraries_.get(),
                                    .ordinal = ordinal,
                                    .tensor_bytes = 64 * kMiB,
                                    .host_memory = pool_,
                                    .pinned = pinned_,
                                    .counts = std::move(counts)});
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }
  void TearDown() override {
    backend_ = nullptr;
    EXPECT_EQ(pinned_->stats().bytes, 0) << "nothing is pinned for a device that has gone";
    pool_ = nullptr;
    hostCudaSet("DEVICES", "");
    CudaTest::TearDown();
  }

  std::shared_ptr<Buffer> Payload(uint64_t seed) {
    const std::string bytes = RandomBytes(static_cast<size_t>(kBytes), seed);
    std::shared_ptr<Buffer> payload = *pool_->Allocate(kBytes);
    std::memcpy(payload->address(), bytes.data(), bytes.size());
    return payload;
  }
  // Sends a payload to the device and fetches it, so that two blocks are in use at once.
  absl::Status Round(Backend* backend, uint64_t seed) {
    const std::shared_ptr<Buffer> payload = Payload(seed);
    auto there = backend->Import(payload->address(), kBytes, payload);
    if (!there.ok()) return there.status();
    auto back = backend->Export(*there);
    if (!back.ok()) return back.status();
    EXPECT_EQ(std::memcmp(back->get(), payload->address(), static_cast<size_t>(kBytes)), 0) << seed;
    return absl::OkStatus();
  }

  const std::shared_ptr<DeviceCounts> counts_ = std::make_shared<DeviceCounts>();
  std::shared_ptr<PinnedBlocks> pinned_;
  std::shared_ptr<HostBufferPool> pool_;
  std::unique_ptr<Backend> backend_;
  std::vector<std::string> refusals_;
};

TEST_F(PinnedBlocksTest, WhatComesBackIsPinnedOnceAndNotCopied) {
  hostCudaSet("DELAY_US", "2000");
  Make();
  ASSERT_TRUE(Round(backend_.get(), 1).ok());
  EXPECT_EQ(pinned_->stats().pinned, 0) << "nobody knows yet whether it comes back";
  EXPECT_EQ(counts_->direct_to_bytes, 0);
  const long ring = hostCudaLivePinned(), calls = hostCudaCalls("cuMemHostRegister_v2");
  for (int64_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(Round(backend_.get(), static_cast<uint64_t>(round)).ok());
    EXPECT_EQ(pinned_->stats().pinned, 2);
    EXPECT_EQ(pinned_->stats().bytes, 2 * kBlock);
    EXPECT_EQ(hostCudaLivePinned(), ring + 2);
    EXPECT_EQ(counts_->direct_to_bytes, round * kBytes);
    EXPECT_EQ(counts_->direct_from_bytes, round * kBytes);
    EXPECT_EQ(counts_->to_device_bytes, (round + 1) * kBytes);
    EXPECT_EQ(counts_->from_device_bytes, (round + 1) * kBytes);
  }
  EXPECT_EQ(hostCudaCalls("cuMemHostRegister_v2"), calls + 2);
  pool_->SetKeepBytes(0);
  EXPECT_EQ(hostCudaLivePinned(), ring) << "it is unpinned before its pages go";
  EXPECT_EQ(pinned_->stats().bytes, 0);
  EXPECT_TRUE(Round(backend_.get(), 9).ok());
  EXPECT_EQ(pinned_->stats().refused, 0);
}

TEST_F(PinnedBlocksTest, PartsOfABlockAreFound) {
  Make();
  Payload(1).reset();
  const std::shared_ptr<Buffer> payload = Payload(2);
  const char* const begin = static_cast<const char*>(payload->address());
  EXPECT_NE(pinned_->Find(begin, kBlock), nullptr);
  EXPECT_NE(pinned_->Find(begin + 100, kBlock - 100), nullptr);
  EXPECT_EQ(pinned_->Find(begin + 100, kBlock), nullptr);
  EXPECT_EQ(pinned_->Find(begin - 1, 1), nullptr);
  EXPECT_EQ(pinned_->Find(begin + kBlock, 1), nullptr);
  const std::shared_ptr<Buffer> fresh = Payload(3);
  EXPECT_EQ(pinned_->Find(fresh->address(), 1), nullptr);
}

TEST_F(PinnedBlocksTest, WhatCannotBePinnedTakesTheRingAndIsSaidOnce) {
  Make();
  ASSERT_TRUE(Round(backend_.get(), 1).ok());
  const long calls = hostCudaCalls("cuMemHostRegister_v2");
  hostCudaFail("cuMemHostRegister_v2", 1, kCuOutOfMemory);
  for (uint64_t round = 2; round < 5; ++round) EXPECT_TRUE(Round(backend_.get(), round).ok());
  EXPECT_EQ(hostCudaCalls("cuMemHostRegister_v2"), calls + 2) << "it is not tried again";
  EXPECT_EQ(pinned_->stats().refused, 1);
  EXPECT_EQ(pinned_->stats().pinned, 1);
  EXPECT_EQ(pinned_->stats().bytes, kBlock);
  ASSERT_EQ(refusals_.size(), 1u);
  EXPECT_THAT(refusals_[0], HasSubstr("cuMemHostRegister"));
  // A new block has its own chance.
  pool_->SetKeepBytes(0);
  pool_->SetKeepBytes(64 * kMiB);
  for (uint64_t round = 5; round < 7; ++round) EXPECT_TRUE(Round(backend_.get(), round).ok());
  EXPECT_EQ(pinned_->stats().bytes, 2 * kBlock);
  for (const char* function : {"cuCtxGetCurrent", "cuCtxSetCurrent"}) {
    pool_->SetKeepBytes(0);
    pool_->SetKeepBytes(64 * kMiB);
    ASSERT_TRUE(Round(backend_.get(), 7).ok());
    hostCudaFail(function, 1, kCuUnknown);
    (*pool_->Allocate(kBytes)).reset();
    hostCudaFail("", 0, 0);
    EXPECT_TRUE(Round(backend_.get(), 8).ok()) << function;
  }
  EXPECT_EQ(pinned_->stats().refused, 2) << "whose context was current is not that important";
  EXPECT_EQ(refusals_.size(), 1u);
}

TEST_F(PinnedBlocksTest, NoMoreIsPinnedThanMayBe) {
  Make(kBlock);
  for (uint64_t round = 0; round < 3; ++round) ASSERT_TRUE(Round(backend_.get(), round).ok());
  EXPECT_EQ(pinned_->stats().bytes, kBlock);
  EXPECT_EQ(pinned_->stats().refused, 1);
  EXPECT_THAT(refusals_, testing::ElementsAre("12582912 bytes would be pinned, and 6291456 may be"));

  // One that lacked room is pinned when the other has gone.
  std::shared_ptr<Buffer> first = Payload(3), second = Payload(4);
  if (pinned_->Find(first->address(), kBytes) == nullptr) std::swap(first, second);
  EXPECT_NE(pinned_->Find(first->address(), kBytes), nullptr);
  EXPECT_EQ(pinned_->Find(second->address(), kBytes), nullptr);
  pool_->SetKeepBytes(0);
  first.reset();
  EXPECT_EQ(pinned_->stats().bytes, 0);
  pool_->SetKeepBytes(64 * kMiB);
  second.reset();
  second = Payload(5);
  EXPECT_NE(pinned_->Find(second->address(), kBytes), nullptr);
  EXPECT_EQ(pinned_->stats().pinned, 2);
  EXPECT_EQ(pinned_->stats().refused, 1);
}

TEST_F(PinnedBlocksTest, ALostDeviceUnpinsAndItsSuccessorPinsAgain) {
  Make();
  for (uint64_t round = 0; round < 2; ++round) ASSERT_TRUE(Round(backend_.get(), round).ok());
  for (const char* function : {"cuEventQuery", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"}) {
    hostCudaFail(function, 1, kCuIllegalAddress);
    EXPECT_EQ(ReasonOf(Round(backend_.get(), 5)), "DEVICE_LOST") << function;
    hostCudaFail("", 0, 0);
    EXPECT_TRUE(Round(backend_.get(), 6).ok()) << function;
    const int64_t direct = counts_->direct_to_bytes;
    EXPECT_TRUE(Round(backend_.get(), 7).ok()) << function;
    EXPECT_EQ(counts_->direct_to_bytes, direct + kBytes) << function;
    EXPECT_EQ(pinned_->stats().bytes, 2 * kBlock) << function;
  }
  EXPECT_EQ(pinned_->stats().refused, 0);
}

// A lost context keeps what it has pinned until it ends, a moment after it was removed.
TEST_F(PinnedBlocksTest, ABlockOfALostContextIsPinnedByAnotherWhenThatHasEnded) {
  hostCudaSet("DEVICES", "2");
  pinned_ = std::make_shared<PinnedBlocks>(PinnedBlocks::Options{.most_bytes = kBlock});
  const std::shared_ptr<Context> lost = *Context::Create(&libraries_->driver(), 0);
  const std::shared_ptr<Context> other = *Context::Create(&libraries_->driver(), 1);
  pinned_->Add(lost);
  pinned_->Add(other);
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kBlock), &std::free);
  pinned_->OnReuse(block.get(), kBlock);
  EXPECT_EQ(pinned_->stats().pinned, 1);
  lost->Lose();
  pinned_->Remove(*lost);
  for (int i = 0; i < 3; ++i) {
    pinned_->OnReuse(block.get(), kBlock);
    EXPECT_EQ(pinned_->Find(block.get(), kBlock), nullptr);
    EXPECT_EQ(pinned_->stats().bytes, 0);
  }
  EXPECT_EQ(pinned_->stats().refused, 1) << "the same again";
  lost->End();
  pinned_->OnReuse(block.get(), kBlock);
  EXPECT_NE(pinned_->Find(block.get(), kBlock), nullptr);
  EXPECT_EQ(pinned_->stats().pinned, 2);
  EXPECT_EQ(pinned_->stats().bytes, kBlock);
  EXPECT_EQ(pinned_->stats().refused, 1);
  pinned_->OnReturn(block.get(), kBlock);
  pinned_->Remove(*other);
}

TEST_F(PinnedBlocksTest, ABlockIsPinnedForAllDevices) {
  hostCudaSet("DEVICES", "2");
  Make();
  const auto counts = std::make_shared<DeviceCounts>();
  std::unique_ptr<Backend> second = Made(1, counts);
  for (uint64_t round = 0; round < 2; ++round) ASSERT_TRUE(Round(backend_.get(), round).ok());
  ASSERT_TRUE(Round(second.get(), 3).ok());
  EXPECT_EQ(counts->direct_to_bytes, kBytes);
  EXPECT_EQ(pinned_->stats().pinned, 2) << "by the first";

  // The first goes while the second reads a block that the first has pinned.
  const std::shared_ptr<Buffer> payload = Payload(4);
  hostCudaSet("HOLD", "1");
  BufferPtr there;
  std::thread reading([&] { there = *second->Import(payload->address(), kBytes, payload); });
  while (counts->direct_to_bytes < 2 * kBytes) std::this_thread::yield();
  const long unpinned = hostCudaCalls("cuMemHostUnregister");
  std::thread releasing([&] {
    // Long enough that a device which does not wait is seen, and no longer.
    for (int i = 0; i < 50 && hostCudaCalls("cuMemHostUnregister") == unpinned; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    hostCudaSet("HOLD", "0");
  });
  backend_ = nullptr;
  releasing.join();
  reading.join();
  EXPECT_EQ(pinned_->stats().bytes, 0);
  auto back = second->Export(there);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(std::memcmp(back->get(), payload->address(), static_cast<size_t>(kBytes)), 0);
  // The second pins by itself now.
  back = absl::UnknownError("");
  for (uint64_t round = 5; round < 8; ++round) ASSERT_TRUE(Round(second.get(), round).ok());
  EXPECT_GT(pinned_->stats().bytes, 0);
}

}  // namespace
}  // namespace tensord::cuda
