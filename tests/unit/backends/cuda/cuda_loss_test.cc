// A device that is lost, by a kernel that faults or by a call that reports it, and is made anew by the next call.
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "engine/base/steady_time.h"
#include "engine/runtime/compile/compiler.h"
#include "engine/runtime/devices/run.h"
#include "gmock/gmock.h"
#include "tests/testlib/graphs/parsed_graph.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

// x + c, with a constant that lies on the device.
constexpr absl::string_view kShift = R"(graph "g" {
  %x = input : f32[64]
  %ramp = iota() {type = f32[64], dimension = 0}
  %c = constant() {value = f32[4] [1, 2, 3, 4]}
  %wide = add(%x, %ramp)
  output "y" = %wide
  output "c" = %c
})";

class CudaLossTest : public CudaTest {
 protected:
  static constexpr int kElements = 64;

  CudaLossTest() {
    auto backend = MakeCudaBackend({.libraries = libraries_.get(),
                                    .tensor_bytes = 16 * kMiB,
                                    .host_memory = host_memory_,
                                    .counts = counts_,
                                    .clock = [this] { return now_; }});
    EXPECT_TRUE(backend.ok()) << backend.status();
    backend_ = *std::move(backend);
  }

  void TearDown() override {
    backend_ = nullptr;
    CudaTest::TearDown();
  }

  CompiledProgramPtr Compiled() {
    auto program = Compile(ParsedGraph(kShift), {.device = "d:0"}, Fingerprint(), backend_.get());
    EXPECT_TRUE(program.ok()) << program.status();
    return *std::move(program);
  }
  static std::vector<float> Ramp(float first) {
    std::vector<float> values(kElements);
    for (int i = 0; i < kElements; ++i) values[static_cast<size_t>(i)] = first + static_cast<float>(i);
    return values;
  }
  static RunRequest RequestOf(const CompiledProgramPtr& program, float first) {
    const auto values = std::make_shared<std::vector<float>>(kElements, first);
    RunRequest run;
    run.program = program;
    run.arguments = {{.type = {DType::kF32, {kElements}}}};
    run.arguments[0].bytes = std::shared_ptr<const void>(values, values->data());
    return run;
  }
  // Runs the program on host values. Checks the results of a run that succeeds.
  static absl::Status RunOnce(const CompiledProgramPtr& program, float first) {
    auto outcome = RunProgram(RequestOf(program, first), absl::ZeroDuration());
    if (!outcome.ok()) return outcome.status();
    const float* const y = static_cast<const float*>(outcome->results[0].bytes.get());
    const float* const c = static_cast<const float*>(outcome->results[1].bytes.get());
    EXPECT_EQ(std::vector<float>(y, y + kElements), Ramp(first));
    EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{1, 2, 3, 4}));
    return absl::OkStatus();
  }

  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(1 << 30, 0);
  const std::shared_ptr<DeviceCounts> counts_ = std::make_shared<DeviceCounts>();
  absl::Time now_ = absl::UnixEpoch();
  std::unique_ptr<Backend> backend_;
};

TEST_F(CudaLossTest, TheNextRunMakesTheDeviceAnew) {
  const CompiledProgramPtr program = Compiled();
  ASSERT_TRUE(RunOnce(program, 1).ok());
  const int64_t in_use = backend_->Memory().in_use_bytes;
  const MemoryStats before = backend_->Memory();
  for (const char* function : {"cuLaunchKernel", "cuEventQuery", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                               "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"}) {
    SCOPED_TRACE(function);
    const long calls = hostCudaCalls(function);
    hostCudaFail(function, 1, kCuIllegalAddress);
    const absl::Status lost = RunOnce(program, 2);
    hostCudaFail("", 0, 0);
    if (hostCudaCalls(function) == calls) continue;
    EXPECT_EQ(ReasonOf(lost), "DEVICE_LOST");
    EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(lost.message()), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
    const long loaded = hostCudaCalls("cuModuleLoadData");
    const absl::Status again = RunOnce(program, 3);
    EXPECT_TRUE(again.ok()) << again;
    EXPECT_GT(hostCudaCalls("cuModuleLoadData"), loaded) << "kernels are of their context";
    EXPECT_TRUE(RunOnce(program, 4).ok());
    EXPECT_EQ(backend_->Memory().in_use_bytes, in_use);
  }
  EXPECT_GE(backend_->Memory().allocated, before.allocated) << "counts go on";
  EXPECT_GE(counts_->lost, 5);
  EXPECT_EQ(counts_->revived, counts_->lost);
  EXPECT_EQ(counts_->failed_revivals, 0);
  EXPECT_EQ(backend_->Describe().memory_bytes, 16 * kMiB);
}

// All that end a context, by NVIDIA's documents. Other errors are of a call alone.
TEST_F(CudaLossTest, ErrorsThatStayAreLosses) {
  const CompiledProgramPtr program = Compiled();
  for (const int result : {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721}) {
    hostCudaFail("cuLaunchKernel", 1, result);
    EXPECT_EQ(ReasonOf(RunOnce(program, 1)), "DEVICE_LOST") << result;
    EXPECT_TRUE(RunOnce(program, 1).ok()) << result;
  }
  for (const int result : {1, 2, 201, 304, 400, 701, 801, 999}) {
    hostCudaFail("cuLaunchKernel", 1, result);
    const absl::Status failed = RunOnce(program, 1);
    EXPECT_FALSE(failed.ok());
    EXPECT_NE(ReasonOf(failed), "DEVICE_LOST") << result;
    EXPECT_TRUE(RunOnce(program, 1).ok()) << result;
  }
}

// A session whose thread cannot wait gives its memory back to nobody else.
TEST_F(CudaLossTest, WorkThatCannotBeWaitedForIsALoss) {
  const CompiledProgramPtr program = Compiled();
  const auto prepared = backend_->Prepare({});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const BufferPtr tensor = *backend_->Import("abcd", 4, nullptr);
  auto session = backend_->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->Run(**prepared, {}, {}, {}).ok());
  hostCudaFail("cuCtxSetCurrent", 1, kCuUnknown);
  EXPECT_FALSE((*session)->Finish().ok());
  EXPECT_TRUE(tensor->is_lost());
  EXPECT_TRUE(RunOnce(program, 1).ok());
}

TEST_F(CudaLossTest, TensorsOfBeforeAreGone) {
  const CompiledProgramPtr program = Compiled();
  const std::vector<float> ones(kElements, 1);
  const auto made = [&] { return *backend_->Import(ones.data(), 4 * kElements, nullptr); };
  const BufferPtr old = made();
  const std::shared_ptr<Buffer> target = *backend_->Allocate(4 * kElements);
  EXPECT_FALSE(old->is_lost());
  hostCudaFail("cuMemcpyDtoHAsync_v2", 1, kCuLaunchFailed);
  EXPECT_EQ(ReasonOf(backend_->Export(old).status()), "DEVICE_LOST");
  EXPECT_TRUE(old->is_lost());
  EXPECT_TRUE(Buffer::View(old, 16, 16)->is_lost());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ReasonOf(backend_->Export(old).status()), "DEVICE_LOST");
    EXPECT_EQ(ReasonOf(backend_->Copy(*old).status()), "DEVICE_LOST");
    EXPECT_EQ(ReasonOf(backend_->Write(target.get(), 0, "abcd")), "DEVICE_LOST");
    RunRequest run = RequestOf(program, 0);
    run.arguments[0].bytes = nullptr;
    run.arguments[0].buffer = old;
    const absl::Status refused = RunProgram(run, absl::ZeroDuration()).status();
    EXPECT_EQ(ReasonOf(refused), "DEVICE_LOST");
    EXPECT_THAT(std::string(refused.message()), HasSubstr("make it again"));
    run.arguments[0].donated = true;
    EXPECT_EQ(ReasonOf(RunProgram(run, absl::ZeroDuration()).status()), "DEVICE_LOST");
    const BufferPtr fresh = made();
    EXPECT_FALSE(fresh->is_lost());
    EXPECT_NE(fresh->address(), old->address());
    EXPECT_TRUE(backend_->Export(fresh).ok());
    EXPECT_TRUE(RunOnce(program, 5).ok());
  }
}

// The window between the look at a run's tensors and its session.
TEST_F(CudaLossTest, ASessionRefusesAddressesOfBefore) {
  const CompiledProgramPtr program = Compiled();
  const BufferPtr old = *backend_->Import("abcd", 4, nullptr);
  hostCudaFail("cuMemcpyDtoHAsync_v2", 1, kCuLaunchFailed);
  EXPECT_FALSE(backend_->Export(old).ok());
  const auto prepared = backend_->Prepare({});
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto session = backend_->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  void* const slots[] = {nullptr, old->address()};
  EXPECT_EQ(ReasonOf((*session)->Run(**prepared, slots, {}, {})), "DEVICE_LOST");
  EXPECT_TRUE((*session)->Finish().ok());
}

TEST_F(CudaLossTest, ADeviceThatDoesNotComeBackSaysSo) {
  const CompiledProgramPtr program = Compiled();
  hostCudaFail("cuLaunchKernel", 1, kCuIllegalAddress);
  EXPECT_EQ(ReasonOf(RunOnce(program, 1)), "DEVICE_LOST");
  hostCudaFail("cuDevicePrimaryCtxRetain", 1, kCuUnknown);
  const absl::Status refused = RunOnce(program, 1);
  EXPECT_EQ(ReasonOf(refused), "DEVICE_LOST");
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("cannot be used again: device cuda:0 is not there: cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN; "
                "if that stays so, restart the server; the next try is due in 100ms"));
  EXPECT_EQ(backend_->Describe().memory_bytes, 16 * kMiB);
  EXPECT_EQ(backend_->Memory().in_use_bytes, 0);
  EXPECT_EQ(counts_->lost, 1);
  EXPECT_EQ(counts_->failed_revivals, 1);
  EXPECT_EQ(counts_->revived, 0);
  EXPECT_EQ(ReasonOf(RunOnce(program, 1)), "DEVICE_LOST");
  EXPECT_EQ(counts_->failed_revivals, 1) << "not each call tries";
  now_ += absl::Milliseconds(100);
  EXPECT_TRUE(RunOnce(program, 1).ok());
  EXPECT_EQ(counts_->failed_revivals, 1);
  EXPECT_EQ(counts_->revived, 1);
}

// Its client has gone, say; the session may be a run that takes long.
TEST_F(CudaLossTest, ARunThatWaitsForTheLastUseEndsAtItsDeadline) {
  const CompiledProgramPtr program = Compiled();
  const std::unique_ptr<BackendSession> last = *backend_->OpenSession();
  hostCudaFail("cuLaunchKernel", 1, kCuIllegalAddress);
  EXPECT_EQ(ReasonOf(RunOnce(program, 1)), "DEVICE_LOST");
  std::future<absl::Status> waiting = std::async(std::launch::async, [&] {
    RunRequest run = RequestOf(program, 1);
    run.deadline = SteadyNow() + absl::Milliseconds(50);
    return RunProgram(run, absl::ZeroDuration()).status();
  });
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(20)), std::future_status::ready) << "it waits for the session";
  EXPECT_FALSE(last->Finish().ok());
  EXPECT_EQ(ReasonOf(waiting.get()), "DEADLINE_EXCEEDED");
  EXPECT_TRUE(RunOnce(program, 1).ok());
}

TEST_F(CudaLossTest, RunsAtOnceAllEndAndTheNextOnesAreRight) {
  const CompiledProgramPtr program = Compiled();
  hostCudaSet("DELAY_US", "300");
  for (long n = 1; n < 40; n += 3) {
    std::atomic<int> lost{0}, right{0};
    hostCudaFail("cuLaunchKernel", n % 8 + 1, kCuIllegalAddress);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 4; ++i) {
          const absl::Status status = RunOnce(program, static_cast<float>(t));
          if (!status.ok()) EXPECT_EQ(ReasonOf(status), "DEVICE_LOST") << status;
          ++(status.ok() ? right : lost);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    hostCudaFail("", 0, 0);
    EXPECT_GE(lost, 1);
    EXPECT_LE(lost, 4) << "those that were under way";
    EXPECT_TRUE(RunOnce(program, 9).ok());
  }
}

}  // namespace
}  // namespace tensord::cuda
