// What goes on beside the making of a device, and of a program's kernels, anew. The driver here is a table that does
// nothing, so that the sanitizers see it.
#include "backends/cuda/revived_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "backends/cuda/device/context.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/base/mutex.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord::cuda {
namespace {

// Far more than any of it takes: only what hangs takes so long.
constexpr std::chrono::seconds kHangs{20};

// A driver whose calls succeed and do nothing. Its memory is addresses.
Driver NoDriver() {
  Driver driver;
  driver.cuGetErrorName = [](CuResult, const char** name) {
    *name = "CUDA_ERROR";
    return kCuSuccess;
  };
  driver.cuDeviceGet = [](CuDevice* device, int) {
    *device = 0;
    return kCuSuccess;
  };
  driver.cuDeviceGetName = [](char* name, int, CuDevice) {
    *name = 'g';
    return kCuSuccess;
  };
  driver.cuDeviceGetAttribute = [](int* value, int, CuDevice) {
    *value = 0;
    return kCuSuccess;
  };
  driver.cuDevicePrimaryCtxRetain = [](CuContext* context, CuDevice) {
    *context = nullptr;
    return kCuSuccess;
  };
  driver.cuDevicePrimaryCtxRelease_v2 = [](CuDevice) { return kCuSuccess; };
  driver.cuDevicePrimaryCtxReset_v2 = [](CuDevice) { return kCuSuccess; };
  driver.cuCtxSetCurrent = [](CuContext) { return kCuSuccess; };
  driver.cuMemAlloc_v2 = [](CuAddress* address, size_t bytes) {
    static std::atomic<CuAddress> next{4096};
    *address = next.fetch_add(bytes);
    return kCuSuccess;
  };
  driver.cuMemFree_v2 = [](CuAddress) { return kCuSuccess; };
  return driver;
}

class NoKernels final : public PreparedSession {
 public:
  int64_t scratch_bytes(size_t) const override { return 0; }
  std::string DescribeKernel(size_t) const override { return ""; }
  std::string DescribeReplay() const override { return "replayed"; }
};

class NoWork final : public BackendSession {
 public:
  absl::Status Run(const PreparedSession& prepared, absl::Span<void* const>, absl::Span<void* const>,
                   absl::Span<SegmentTime>) override {
    EXPECT_NE(dynamic_cast<const NoKernels*>(&prepared), nullptr);
    return absl::OkStatus();
  }
  absl::Status Finish() override { return absl::OkStatus(); }
};

// The backend of one context. What a test waits in is called.
class OneBackend final : public Backend {
 public:
  OneBackend(std::shared_ptr<DevicePool> memory, const std::function<absl::Status()>* preparing)
      : memory_(std::move(memory)), preparing_(preparing) {}

  absl::string_view kind() const override { return "cuda"; }
  DeviceDescription Describe() const override { return {.model = "g", .memory_bytes = memory_->limit_bytes()}; }
  MemoryStats Memory() const override { return memory_->stats(); }
  absl::Status Supports(const OpDef&, absl::Span<const DType>, DType) const override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<PreparedSession>> Prepare(absl::Span<const SegmentInstruction>) const override {
    RETURN_IF_ERROR((*preparing_)());
    return std::make_unique<NoKernels>();
  }
  absl::StatusOr<std::unique_ptr<BackendSession>> OpenSession() override { return std::make_unique<NoWork>(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(int64_t size_bytes) override {
    return memory_->Allocate(size_bytes);
  }
  absl::StatusOr<BufferPtr> Import(const void*, int64_t size_bytes, std::shared_ptr<const void>) override {
    return memory_->Allocate(size_bytes);
  }
  absl::StatusOr<std::shared_ptr<const void>> Export(BufferPtr) override { return nullptr; }
  absl::Status Write(Buffer*, int64_t, absl::string_view) override { return absl::OkStatus(); }
  absl::StatusOr<std::shared_ptr<Buffer>> Copy(const Buffer& buffer) override { return Allocate(buffer.size_bytes()); }

 private:
  const std::shared_ptr<DevicePool> memory_;
  const std::function<absl::Status()>* const preparing_;
};

class RevivedBackendTest : public testing::Test {
 protected:
  static constexpr int64_t kLimitBytes = 1 << 20;

  void SetUp() override {
    auto backend = MakeRevivedBackend(
        "cuda:0", [this] { return Made(); }, [this] { return now_; });
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  absl::StatusOr<Incarnation> Made() {
    ++makings_;
    RETURN_IF_ERROR(making_());
    ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::Create(&driver_, 0));
    ASSIGN_OR_RETURN(std::shared_ptr<DevicePool> memory,
                     DevicePool::Create(context, {.limit_bytes = kLimitBytes, .uses_virtual_memory = false}));
    auto backend = std::make_unique<OneBackend>(memory, &preparing_);
    MutexLock lock(&mutex_);
    context_ = context;
    return Incarnation{.context = std::move(context), .memory = std::move(memory), .backend = std::move(backend)};
  }

  std::unique_ptr<PreparedSession> Prepared() {
    auto prepared = backend_->Prepare({});
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return *std::move(prepared);
  }

  absl::Status Run(const PreparedSession& prepared, RunCheck check = nullptr) {
    ASSIGN_OR_RETURN(const std::unique_ptr<BackendSession> session, backend_->OpenSession());
    session->set_check(std::move(check));
    RETURN_IF_ERROR(session->Run(prepared, {}, {}, {}));
    return session->Finish();
  }

  // For a call that is not wanted any more when the check refuses.
  absl::Status AllocatedBy(const RunCheck& check) {
    StopSignal stop(check);
    const StopSignal::Scope scope(&stop);
    return backend_->Allocate(100).status();
  }

  std::shared_ptr<Context> Alive() const {
    MutexLock lock(&mutex_);
    return context_;
  }

  template <typename Work>
  static auto OnAThread(Work work) {
    return std::async(std::launch::async, std::move(work));
  }
  // Begins a call that makes the device anew, and is at that until the event.
  std::future<absl::Status> ReviverUntil(Event* go) {
    making_ = [this, go] {
      begun_.Set();
      go->Wait();
      return absl::OkStatus();
    };
    std::future<absl::Status> reviver = OnAThread([this] { return backend_->Allocate(100).status(); });
    begun_.Wait();
    return reviver;
  }
  template <typename T>
  static bool Ends(const std::future<T>& work) {
    return work.wait_for(kHangs) == std::future_status::ready;
  }

  const Driver driver_ = NoDriver();
  std::function<absl::Status()> making_ = [] { return absl::OkStatus(); };
  std::function<absl::Status()> preparing_ = [] { return absl::OkStatus(); };
  Event begun_;
  std::atomic<int> makings_{0};
  absl::Time now_ = absl::UnixEpoch();
  mutable Mutex mutex_;
  std::shared_ptr<Context> context_ ABSL_GUARDED_BY(mutex_);  // of the last incarnation
  std::unique_ptr<Backend> backend_;
};

const RunCheck kGone = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };

TEST_F(RevivedBackendTest, WhoWaitsForKernelsMayGiveUp) {
  const std::unique_ptr<PreparedSession> prepared = Prepared();
  Alive()->Lose();
  Event begun, go;
  preparing_ = [&] {
    begun.Set();
    go.Wait();
    return absl::OkStatus();
  };
  std::future<absl::Status> preparer = OnAThread([&] { return Run(*prepared); });
  begun.Wait();
  std::future<absl::Status> waiting = OnAThread([&] { return Run(*prepared, kGone); });
  EXPECT_TRUE(Ends(waiting)) << "it waits for the one who prepares";
  std::future<std::string> described = OnAThread([&] { return prepared->DescribeReplay(); });
  EXPECT_TRUE(Ends(described)) << "it waits for the one who prepares";
  std::future<absl::Status> patient = OnAThread([&] { return Run(*prepared, [] { return absl::OkStatus(); }); });
  go.Set();
  EXPECT_EQ(ReasonOf(waiting.get()), "CANCELLED");
  EXPECT_EQ(described.get(), "");
  EXPECT_TRUE(preparer.get().ok());
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(prepared->DescribeReplay(), "replayed");
}

TEST_F(RevivedBackendTest, WhoPreparesMayGiveUpForHimselfAlone) {
  const std::unique_ptr<PreparedSession> prepared = Prepared();
  Alive()->Lose();
  Event begun;
  std::atomic<int> preparations{0};
  std::atomic<bool> is_gone{false};
  preparing_ = [&] {
    if (++preparations > 1) return absl::OkStatus();
    begun.Set();
    const auto end = std::chrono::steady_clock::now() + kHangs;
    while (!StopRequested() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return absl::OkStatus();  // looks as if it had succeeded
  };
  std::future<absl::Status> preparer =
      OnAThread([&] { return Run(*prepared, [&] { return is_gone ? kGone() : absl::OkStatus(); }); });
  begun.Wait();
  std::future<absl::Status> next = OnAThread([&] { return Run(*prepared); });
  is_gone = true;
  EXPECT_EQ(ReasonOf(preparer.get()), "CANCELLED");
  EXPECT_TRUE(next.get().ok());
  EXPECT_EQ(preparations, 2);
  EXPECT_TRUE(Run(*prepared).ok());
  EXPECT_EQ(preparations, 2) << "kernels are there";
}

// Scrapes of metrics and GetServerInfo ask these, and a program's end may come at any time.
TEST_F(RevivedBackendTest, WhatTellsOfTheDeviceDoesNotWaitForItsRevival) {
  std::unique_ptr<PreparedSession> prepared = Prepared();
  ASSERT_TRUE(backend_->Allocate(100).ok());
  const int64_t allocated = backend_->Memory().allocated;
  EXPECT_EQ(allocated, 1);
  Alive()->Lose();
  EXPECT_EQ(backend_->Memory().allocated, allocated);
  Event go;
  std::future<absl::Status> reviver = ReviverUntil(&go);
  std::future<void> asking = OnAThread([&] {
    EXPECT_EQ(backend_->Memory().allocated, allocated) << "counts never go back";
    EXPECT_EQ(backend_->Memory().in_use_bytes, 0);
    EXPECT_EQ(backend_->Describe().memory_bytes, kLimitBytes);
    EXPECT_TRUE(
        backend_->Supports(CoreOps()[static_cast<size_t>(CoreOp::kAdd)], {DType::kF32, DType::kF32}, DType::kF32).ok());
    prepared = nullptr;
  });
  EXPECT_TRUE(Ends(asking)) << "it waits for the revival";
  go.Set();
  EXPECT_TRUE(reviver.get().ok());
  asking.get();
  EXPECT_EQ(backend_->Memory().allocated, allocated + 1);
  EXPECT_EQ(makings_, 2);
}

TEST_F(RevivedBackendTest, WhoWaitsForARevivalMayGiveUp) {
  Alive()->Lose();
  Event go;
  std::future<absl::Status> reviver = ReviverUntil(&go);
  std::future<absl::Status> waiting = OnAThread([&] { return AllocatedBy(kGone); });
  EXPECT_TRUE(Ends(waiting)) << "it waits for the revival";
  std::future<absl::Status> patient = OnAThread([&] { return AllocatedBy([] { return absl::OkStatus(); }); });
  go.Set();
  EXPECT_EQ(ReasonOf(waiting.get()), "CANCELLED");
  EXPECT_TRUE(reviver.get().ok());
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(makings_, 2);
}

TEST_F(RevivedBackendTest, WhoWaitsForTheLastUseMayGiveUp) {
  std::unique_ptr<BackendSession> last = *backend_->OpenSession();
  Alive()->Lose();
  std::future<absl::Status> waiting = OnAThread([&] { return AllocatedBy(kGone); });
  EXPECT_TRUE(Ends(waiting)) << "it waits for the session";
  std::future<absl::Status> patient = OnAThread([&] { return backend_->Allocate(100).status(); });
  EXPECT_EQ(backend_->Describe().memory_bytes, kLimitBytes) << "a lost one tells too";
  EXPECT_EQ(makings_, 1);
  EXPECT_TRUE(last->Finish().ok());
  EXPECT_EQ(ReasonOf(waiting.get()), "CANCELLED");
  EXPECT_TRUE(patient.get().ok());
  EXPECT_EQ(makings_, 2);
}

TEST_F(RevivedBackendTest, ARevivalThatFailsIsTriedAgainAfterAPause) {
  const auto refusal = [&] { return backend_->Allocate(100).status(); };
  const auto told = [&] { return DetailOf(refusal())->retry_after; };
  for (int loss = 0; loss < 2; ++loss) {
    Alive()->Lose();
    makings_ = 0;
    making_ = [] { return absl::UnavailableError("the driver has none"); };
    absl::Duration pause = absl::Milliseconds(100);
    for (int failures = 1; failures <= 12; ++failures) {
      const absl::Status failed = refusal();
      EXPECT_EQ(ReasonOf(failed), "DEVICE_LOST");
      EXPECT_EQ(failed.message(), absl::StrCat("the device has failed and cannot be used again: the driver has none; "
                                               "if that stays so, restart the server; the next try is due in ",
                                               absl::FormatDuration(pause)));
      EXPECT_EQ(makings_, failures);
      EXPECT_EQ(told(), pause);
      now_ += pause / 2;
      EXPECT_EQ(told(), pause / 2);
      now_ += pause / 2 - absl::Milliseconds(1);
      EXPECT_EQ(told(), absl::Milliseconds(1));
      EXPECT_EQ(makings_, failures) << "nobody tries before it is due";
      now_ += absl::Milliseconds(1);
      pause = std::min(2 * pause, absl::Seconds(30));
    }
    EXPECT_EQ(pause, absl::Seconds(30));
    making_ = [] { return absl::OkStatus(); };
    EXPECT_TRUE(refusal().ok());
    EXPECT_EQ(makings_, 13);
  }
}

// The sanitizers look on.
TEST_F(RevivedBackendTest, AllAtOnce) {
  const std::unique_ptr<PreparedSession> shared = Prepared();
  std::atomic<bool> is_over{false};
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 3; ++t) {
    threads.push_back(OnAThread([&] {
      while (!is_over) {
        const absl::Status ran = Run(*shared);
        EXPECT_TRUE(ran.ok() || ReasonOf(ran) == "DEVICE_LOST") << ran;
        const auto own = backend_->Prepare({});
        EXPECT_TRUE(own.ok()) << own.status();
      }
    }));
  }
  threads.push_back(OnAThread([&] {
    int64_t allocated = 0;
    while (!is_over) {
      const int64_t now = backend_->Memory().allocated;
      EXPECT_GE(now, allocated);
      allocated = now;
      EXPECT_EQ(backend_->Describe().memory_bytes, kLimitBytes);
    }
  }));
  for (int i = 0; i < 200; ++i) {
    const auto buffer = backend_->Allocate(100);
    EXPECT_TRUE(buffer.ok() || ReasonOf(buffer) == "DEVICE_LOST") << buffer.status();
    Alive()->Lose();
  }
  is_over = true;
  for (std::future<void>& thread : threads) thread.get();
  EXPECT_GT(makings_, 1);
}

}  // namespace
}  // namespace tensord::cuda
