// What goes on beside the making of a device, and of a program's kernels, anew. The driver here is a table that does
// nothing, so that the sanitizers see it.
#include "backends/cuda/revived_backend.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/cuda/device/context.h"
#include "backends/cuda/memory/device_pool.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/engine/runtime/gated_backend.h"

namespace tensord::cuda {
namespace {

// Far more than any of it takes: only what hangs takes so long.
constexpr std::chrono::seconds kHangs{20};

// A driver whose calls succeed and do nothing, but for memory.
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
    *address = reinterpret_cast<CuAddress>(std::malloc(bytes));
    return kCuSuccess;
  };
  driver.cuMemFree_v2 = [](CuAddress address) {
    std::free(reinterpret_cast<void*>(address));
    return kCuSuccess;
  };
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
    auto backend = MakeRevivedBackend([this] { return Made(); });
    ASSERT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  absl::StatusOr<Incarnation> Made() {
    ++makings_;
    RETURN_IF_ERROR(making_());
    ASSIGN_OR_RETURN(context_, Context::Create(&driver_, 0));
    ASSIGN_OR_RETURN(std::shared_ptr<DevicePool> memory,
                     DevicePool::Create(context_, {.limit_bytes = kLimitBytes, .uses_virtual_memory = false}));
    auto backend = std::make_unique<OneBackend>(memory, &preparing_);
    return Incarnation{.context = context_, .memory = std::move(memory), .backend = std::move(backend)};
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

  template <typename Work>
  static auto OnAThread(Work work) {
    return std::async(std::launch::async, std::move(work));
  }
  template <typename T>
  static bool Ends(const std::future<T>& work) {
    return work.wait_for(kHangs) == std::future_status::ready;
  }

  const Driver driver_ = NoDriver();
  std::function<absl::Status()> making_ = [] { return absl::OkStatus(); };
  std::function<absl::Status()> preparing_ = [] { return absl::OkStatus(); };
  std::atomic<int> makings_{0};
  std::shared_ptr<Context> context_;  // of the last incarnation
  std::unique_ptr<Backend> backend_;
};

const RunCheck kGone = [] { return Refuse(Refusal::kCancelled, "the client is gone"); };

TEST_F(RevivedBackendTest, WhoWaitsForKernelsMayGiveUp) {
  const std::unique_ptr<PreparedSession> prepared = Prepared();
  context_->Lose();
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
  context_->Lose();
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

}  // namespace
}  // namespace tensord::cuda
