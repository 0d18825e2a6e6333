#include "backends/cuda/device/lane.h"

#include <chrono>
#include <functional>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/compile/cubin_store.h"
#include "backends/cuda/compile/kernel_compiler.h"
#include "backends/cuda/device/lanes.h"
#include "backends/cuda/device/timing_events.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/base/refusal.h"
#include "engine/base/stop_signal.h"
#include "gmock/gmock.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

class LaneTest : public CudaTest {
 protected:
  static CuAddress Device(Context& context, size_t bytes) {
    CuAddress address = 0;
    EXPECT_EQ(context.driver().cuMemAlloc_v2(&address, bytes), kCuSuccess);
    return address;
  }
  static void Free(Context& context, CuAddress address) {
    EXPECT_EQ(context.driver().cuMemFree_v2(address), kCuSuccess);
  }
};

TEST_F(LaneTest, BytesArriveHoweverLateTheStreamIs) {
  const std::shared_ptr<Context> context = Entered();
  EXPECT_FALSE(context->model().empty());
  hostCudaSet("DELAY_US", "3000");
  const int64_t place = Lane::kPlaceBytes;
  const auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok()) << lane.status();
  uint64_t seed = 0;
  for (const int64_t size : {int64_t{1}, int64_t{4096}, place - 1, place, place + 1, 5 * place + 3}) {
    const std::string first = RandomBytes(static_cast<size_t>(size), ++seed);
    const std::string second = RandomBytes(static_cast<size_t>(size), ++seed);
    const CuAddress a = Device(*context, first.size()), b = Device(*context, first.size());
    std::string from_a(first.size(), '\0'), from_b(first.size(), '\0');
    {
      std::string gone = first;  // it may go once it has been read
      ASSERT_TRUE((*lane)->Upload(a, gone.data(), size).ok());
      gone.assign(gone.size(), 'x');
    }
    ASSERT_TRUE((*lane)->Copy(b, a, size).ok());
    ASSERT_TRUE((*lane)->Upload(a, second.data(), size).ok());
    ASSERT_TRUE((*lane)->Download(from_a.data(), a, size).ok());
    ASSERT_TRUE((*lane)->Download(from_b.data(), b, size).ok());
    ASSERT_TRUE((*lane)->Finish().ok());
    EXPECT_TRUE(from_a == second && from_b == first) << size;
    Free(*context, a);
    Free(*context, b);
  }
  EXPECT_TRUE((*lane)->Upload(0, nullptr, 0).ok());
  EXPECT_TRUE((*lane)->Finish().ok());
}

TEST_F(LaneTest, AFailureLeavesNothingOnItsWay) {
  const std::shared_ptr<Context> context = Entered();
  hostCudaSet("DELAY_US", "3000");
  const auto pool = DevicePool::Create(context, {.limit_bytes = 8 << 20});
  ASSERT_TRUE(pool.ok());
  std::shared_ptr<Buffer> buffer = *(*pool)->Allocate(3 << 20);
  const CuAddress a = reinterpret_cast<CuAddress>(buffer->address());
  auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok());
  const std::string bytes = RandomBytes(1 << 20, 1);
  hostCudaFail("cuMemcpyHtoDAsync_v2", 3, kCuUnknown);
  EXPECT_TRUE((*lane)->Upload(a, bytes.data(), 1 << 20).ok());
  EXPECT_TRUE((*lane)->Upload(a + (1 << 20), bytes.data(), 1 << 20).ok());
  const absl::Status failed = (*lane)->Upload(a + (2 << 20), bytes.data(), 1 << 20);
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("cuMemcpyHtoDAsync"));
  EXPECT_FALSE((*lane)->is_usable());
  EXPECT_FALSE(context->is_lost());
  // This does not wait: a copy that was on its way would end the context.
  buffer.reset();
  (*pool)->Trim();
  EXPECT_EQ(context->driver().cuCtxSynchronize(), kCuSuccess);
}

TEST_F(LaneTest, WhoCannotWaitHasLostTheDevice) {
  const std::shared_ptr<Context> context = Entered();
  auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok());
  hostCudaFail("cuEventQuery", 1, kCuIllegalAddress);
  const absl::Status failed = (*lane)->Finish();
  EXPECT_EQ(ReasonOf(failed), "DEVICE_LOST");
  EXPECT_TRUE(context->is_lost());
  EXPECT_EQ(ReasonOf(context->Enter()), "DEVICE_LOST");
  lane->reset();
  ResetDevice();
}

// The driver's wait for a stream would keep a processor busy.
TEST_F(LaneTest, WhoWaitsForLongSleeps) {
  const std::shared_ptr<Context> context = Entered();
  const auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok());
  const CuAddress a = Device(*context, 200);
  const auto sleeps = [this] { return hostCudaCalls("cuEventSynchronize"); };
  const auto spins = [this] { return hostCudaCalls("cuStreamSynchronize"); };
  const long sleeps_before = sleeps(), spins_before = spins();
  hostCudaSet("HOLD", "1");
  ASSERT_TRUE((*lane)->Copy(a + 100, a, 100).ok());
  std::thread other([&] {
    while (sleeps() == sleeps_before && spins() == spins_before) std::this_thread::yield();
    hostCudaSet("HOLD", "0");
  });
  EXPECT_TRUE((*lane)->Finish().ok());
  other.join();
  EXPECT_EQ(spins(), spins_before);
  EXPECT_EQ(sleeps(), sleeps_before + 1);
  Free(*context, a);
}

// Whoever waits for an event wants the work before it to be done.
TEST_F(LaneTest, AnEventThatNobodyCanWaitForIsAWaitForAll) {
  const std::shared_ptr<Context> context = Entered();
  const auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok());
  TimingEvents events(context);
  const auto event = events.Record(lane->get());
  ASSERT_TRUE(event.ok() && *event != nullptr);
  hostCudaFail("cuEventQuery", 1, kCuUnknown);
  EXPECT_TRUE((*lane)->WaitFor(*event).ok());
  EXPECT_TRUE((*lane)->is_usable());
  hostCudaFail("cuEventQuery", 1, kCuIllegalAddress);
  EXPECT_EQ(ReasonOf((*lane)->WaitFor(*event)), "DEVICE_LOST");
  ResetDevice();
}

// A library's call that fails because a kernel before it has faulted.
TEST_F(LaneTest, ALibrarysFailureAfterAFaultIsALoss) {
  const std::shared_ptr<Context> context = Entered();
  auto lane = Lane::Create(context, libraries_.get());
  ASSERT_TRUE(lane.ok());
  auto compiler = KernelCompiler::Create(context, *libraries_->nvrtc(), CubinStore::InMemory());
  ASSERT_TRUE(compiler.ok());
  auto faulting = (*compiler)->Compile(
      {.source = "extern \"C\" __global__ void touch(int* at) { *at = 1; }", .launches = {{.entry = "touch"}}});
  ASSERT_TRUE(faulting.ok()) << faulting.status();
  const CuAddress freed = Device(*context, 100);
  Free(*context, freed);
  const absl::Status failed = (*lane)->Enqueue([&](CuStream stream) {
    EXPECT_TRUE((*faulting)->Enqueue(stream, {freed}).ok());
    return absl::InternalError("cublasLtMatmul: cublasStatus_t 13");
  });
  EXPECT_EQ(ReasonOf(failed), "DEVICE_LOST");
  EXPECT_THAT(std::string(failed.message()), HasSubstr("cublasLtMatmul: cublasStatus_t 13"));
  EXPECT_TRUE(context->is_lost());
  faulting->reset();
  lane->reset();
  ResetDevice();
}

TEST_F(LaneTest, LanesAreLentOneToEach) {
  const std::shared_ptr<Context> context = Entered();
  hostCudaSet("DELAY_US", "500");
  Lanes lanes(context, libraries_.get(), 2);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 5; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_TRUE(context->Enter().ok());
      const CuAddress a = Device(*context, 100000);
      for (uint64_t round = 0; round < 5; ++round) {
        const std::string bytes = RandomBytes(100000, 10 * t + round);
        std::string back(bytes.size(), '\0');
        const auto lane = lanes.Borrow();
        ASSERT_TRUE(lane.ok());
        EXPECT_TRUE((*lane)->Upload(a, bytes.data(), 100000).ok());
        EXPECT_TRUE((*lane)->Download(back.data(), a, 100000).ok());
        EXPECT_TRUE((*lane)->Finish().ok());
        EXPECT_TRUE(back == bytes);
      }
      Free(*context, a);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hostCudaLivePinned(), 2);
  // One that failed is made anew, and one that cannot be made is not missed afterwards.
  for (const char* function : {"cuEventRecord", "cuMemcpyHtoDAsync_v2"}) {
    hostCudaFail(function, 1, kCuUnknown);
    const auto lane = lanes.Borrow();
    ASSERT_TRUE(lane.ok());
    const CuAddress a = Device(*context, 10);
    EXPECT_FALSE((*lane)->Upload(a, "0123456789", 10).ok());
    Free(*context, a);
  }
  EXPECT_EQ(hostCudaLivePinned(), 0);
  hostCudaFail("cuMemHostAlloc", 1, kCuOutOfMemory);
  EXPECT_EQ(ReasonOf(lanes.Borrow().status()), "OUT_OF_MEMORY");
  const auto first = lanes.Borrow(), second = lanes.Borrow();
  EXPECT_TRUE(first.ok() && second.ok());
}

// As where the host has no memory for the rest of a run: what the next borrower waits for is its own work alone, and
// memory that the first one had can go at once.
TEST_F(LaneTest, ALaneThatComesBackByAnExceptionHasNothingOnItsWay) {
  const std::shared_ptr<Context> context = Entered();
  hostCudaSet("DELAY_US", "3000");
  const int64_t bytes = 3 << 20;
  const auto pool = DevicePool::Create(context, {.limit_bytes = 2 * bytes});
  ASSERT_TRUE(pool.ok());
  Lanes lanes(context, libraries_.get(), 1);
  using Step = std::function<absl::Status(Lane*, CuAddress)>;
  std::string from(static_cast<size_t>(bytes), 'a'), to(static_cast<size_t>(bytes), 'x');
  const std::vector<Step> steps = {[&](Lane* lane, CuAddress at) { return lane->Upload(at, from.data(), bytes); },
                                   [&](Lane* lane, CuAddress at) { return lane->Download(to.data(), at, bytes); },
                                   [&](Lane* lane, CuAddress at) { return lane->Copy(at, at + bytes / 2, bytes / 2); },
                                   [&](Lane* lane, CuAddress at) { return lane->Fill(at, 7, bytes); },
                                   [&](Lane* lane, CuAddress at) {
                                     return lane->Enqueue([&](CuStream stream) {
                                       return context->Check(context->driver().cuMemsetD8Async(at, 8, bytes, stream),
                                                             "cuMemsetD8Async");
                                     });
                                   }};
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto run = [&] {
      const std::shared_ptr<Buffer> buffer = *(*pool)->Allocate(bytes);
      const Lanes::Loan lane = *lanes.Borrow();
      EXPECT_TRUE(steps[i](lane.get(), reinterpret_cast<CuAddress>(buffer->address())).ok());
      throw std::bad_alloc();
    };
    EXPECT_THROW(run(), std::bad_alloc);
    (*pool)->Trim();  // this does not wait: work that was on its way would end the context
    EXPECT_EQ(context->driver().cuCtxSynchronize(), kCuSuccess) << i;
    const auto next = lanes.Borrow();
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_TRUE((*next)->Finish().ok()) << i;
    EXPECT_TRUE(to == std::string(to.size(), 'x')) << "its memory may have been another's by then";
  }
}

TEST_F(LaneTest, ACaptureEndsWithAnException) {
  const std::shared_ptr<Context> context = Entered();
  Lanes lanes(context, libraries_.get(), 1);
  const CuAddress a = Device(*context, 200);
  {
    const Lanes::Loan lane = *lanes.Borrow();
    const auto capture = [&] {
      lane->Capture([&](CuStream stream) -> absl::Status {
        EXPECT_EQ(context->driver().cuMemsetD8Async(a, 7, 100, stream), kCuSuccess);
        throw std::bad_alloc();
      });
    };
    EXPECT_THROW(capture(), std::bad_alloc);
    EXPECT_TRUE(lane->Copy(a + 100, a, 100).ok());
    EXPECT_TRUE(lane->Finish().ok());
  }
  EXPECT_FALSE(context->is_lost());
  Free(*context, a);
}

// A run that is cancelled, while transfers have all of them.
TEST_F(LaneTest, WhoWaitsForALaneMayGiveUp) {
  const std::shared_ptr<Context> context = Entered();
  Lanes lanes(context, libraries_.get(), 1);
  absl::StatusOr<Lanes::Loan> lent = lanes.Borrow();
  ASSERT_TRUE(lent.ok()) << lent.status();
  std::future<absl::Status> patient = std::async(std::launch::async, [&] { return lanes.Borrow().status(); });
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    const StopSignal::Check gone = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };
    StopSignal stop(gone);
    const StopSignal::Scope scope(&stop);
    return lanes.Borrow().status();
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it waits for the lane";
  *lent = nullptr;
  EXPECT_EQ(ReasonOf(waiting.get()), "CANCELLED");
  EXPECT_TRUE(patient.get().ok());
}

TEST_F(LaneTest, ADeviceThatIsNotThere) {
  const absl::Status refused = Context::Create(&libraries_->driver(), 7).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("device cuda:7 is not there: cuDeviceGet"));
}

}  // namespace
}  // namespace tensord::cuda
