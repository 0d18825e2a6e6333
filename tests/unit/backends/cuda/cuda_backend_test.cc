#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/ops/core_ops.h"
#include "gmock/gmock.h"
#include "tests/testlib/reason_of.h"
#include "tests/unit/backends/cuda/cuda_test.h"

namespace tensord::cuda {
namespace {

using testing::HasSubstr;

class CudaBackendTest : public CudaTest {
 protected:
  CudaBackendOptions Options() {
    return {.libraries = libraries_.get(), .tensor_bytes = 64 * kMiB, .host_memory = host_memory_};
  }
  std::unique_ptr<Backend> Made() {
    auto backend = MakeCudaBackend(Options());
    EXPECT_TRUE(backend.ok()) << backend.status();
    return *std::move(backend);
  }
  static absl::string_view BytesOf(const std::shared_ptr<const void>& bytes, size_t size) {
    return {static_cast<const char*>(bytes.get()), size};
  }

  // Imports, copies, writes and exports, and compares. OK, or the first refusal.
  static absl::Status MoveTensors(Backend* backend, uint64_t seed) {
    const std::string a = RandomBytes(static_cast<size_t>(5 * kMiB + 5), seed), b = RandomBytes(1000, seed + 1);
    absl::StatusOr<BufferPtr> first = backend->Import(a.data(), static_cast<int64_t>(a.size()), nullptr);
    if (!first.ok()) return first.status();
    absl::StatusOr<std::shared_ptr<Buffer>> copy = backend->Copy(**first);
    if (!copy.ok()) return copy.status();
    if (absl::Status written = backend->Write(copy->get(), 77, b); !written.ok()) return written;
    std::shared_ptr<const void> bytes[3];
    const BufferPtr buffers[] = {*first, nullptr, *copy};
    if (absl::Status exported = backend->ExportAll(buffers, bytes); !exported.ok()) return exported;
    std::string changed = a;
    changed.replace(77, b.size(), b);
    EXPECT_TRUE(BytesOf(bytes[0], a.size()) == a);
    EXPECT_EQ(bytes[1], nullptr);
    EXPECT_TRUE(BytesOf(bytes[2], a.size()) == changed);
    return absl::OkStatus();
  }

  const std::shared_ptr<HostBufferPool> host_memory_ = HostBufferPool::Create(1 << 30, 0);
};

TEST_F(CudaBackendTest, TensorsGoThereAndComeBack) {
  hostCudaSet("DELAY_US", "2000");
  const std::unique_ptr<Backend> backend = Made();
  EXPECT_EQ(backend->kind(), "cuda");
  const DeviceDescription description = backend->Describe();
  EXPECT_FALSE(description.model.empty());
  EXPECT_EQ(description.memory_bytes, 64 * kMiB);
  EXPECT_FALSE(description.computes_in_host_memory);
  EXPECT_FALSE(description.computes_on_caller);
  EXPECT_TRUE(description.prepares_slowly);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(MoveTensors(backend.get(), 100 * t + 10 * i).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backend->Memory().in_use_bytes, 0);
  const auto empty = backend->Import(nullptr, 0, nullptr);
  ASSERT_TRUE(empty.ok());
  EXPECT_NE((*empty)->address(), nullptr);
  EXPECT_TRUE(backend->Export(*empty).ok());
  EXPECT_TRUE(backend->Copy(**empty).ok());
}

TEST_F(CudaBackendTest, OpsAreRefusedByName) {
  const std::unique_ptr<Backend> backend = Made();
  const DType operands[] = {DType::kF32, DType::kF32};
  EXPECT_TRUE(backend->Supports(Def(CoreOp::kAdd), operands, DType::kF32).ok());
  OpDef missing = Def(CoreOp::kAdd);
  missing.op_class = OpClass::kExtension;
  missing.name = "example.Missing";
  const absl::Status refused = backend->Supports(missing, operands, DType::kF32);
  EXPECT_EQ(ReasonOf(refused), "UNSUPPORTED_ON_DEVICE");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cuda:0 cannot run example.Missing on f32"));
}

TEST_F(CudaBackendTest, MemoryIsBoundedOnBothSides) {
  CudaBackendOptions options = Options();
  options.tensor_bytes = 4 * kMiB;
  options.host_memory = HostBufferPool::Create(kMiB, 0, "host");
  auto backend = MakeCudaBackend(options);
  ASSERT_TRUE(backend.ok());
  const std::string bytes(3 * kMiB, 'x');
  const auto first = (*backend)->Import(bytes.data(), 3 * kMiB, nullptr);
  ASSERT_TRUE(first.ok());
  const absl::Status second = (*backend)->Copy(**first).status();
  EXPECT_EQ(ReasonOf(second), "OUT_OF_MEMORY");
  EXPECT_THAT(std::string(second.message()), HasSubstr("cuda.tensor_bytes"));
  const auto small = (*backend)->Import(bytes.data(), 1000, nullptr);
  std::shared_ptr<const void> exported[2];
  const BufferPtr both[] = {*small, *first};
  const absl::Status export_status = (*backend)->ExportAll(both, exported);
  EXPECT_EQ(ReasonOf(export_status), "OUT_OF_MEMORY");
  EXPECT_THAT(std::string(export_status.message()), HasSubstr("host"));
  EXPECT_TRUE((*backend)->Export(*small).ok());
}

TEST_F(CudaBackendTest, ByDefaultLibrariesHaveRoomBesideTensors) {
  hostCudaSet("MEMORY", "4294967296");
  CudaBackendOptions options = Options();
  options.tensor_bytes = -1;
  EXPECT_EQ((*MakeCudaBackend(options))->Describe().memory_bytes, (int64_t{4} << 30) - (int64_t{3} << 29));
  hostCudaSet("MEMORY", "1073741824");
  EXPECT_EQ((*MakeCudaBackend(options))->Describe().memory_bytes, int64_t{1} << 29);
}

TEST_F(CudaBackendTest, EachCallMayFailOnceAndNothingIsLeft) {
  hostCudaSet("DELAY_US", "300");
  int failures = 0;
  for (const char* function :
       {"cuCtxSetCurrent", "cuMemCreate", "cuMemMap", "cuMemRelease", "cuMemSetAccess", "cuStreamCreate",
        "cuMemHostAlloc", "cuEventCreate", "cuEventRecord", "cuEventQuery", "cuEventSynchronize",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"}) {
    for (long n = 1; n < 8; ++n) {
      const std::unique_ptr<Backend> fresh = Made();
      const long calls = hostCudaCalls(function);
      hostCudaFail(function, n, kCuUnknown);
      const absl::Status status = MoveTensors(fresh.get(), 1);
      hostCudaFail("", 0, 0);
      if (hostCudaCalls(function) - calls < n) break;
      // Where the wait for a stream fails too, its device counts as lost; else the next run is right.
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << function << " " << n << ": " << status;
      EXPECT_EQ(fresh->Memory().in_use_bytes, 0) << function << " " << n;
      EXPECT_TRUE(MoveTensors(fresh.get(), 2).ok()) << function << " " << n;
      ++failures;
    }
  }
  EXPECT_GT(failures, 30);
  for (const char* function : {"cuDeviceGet", "cuDeviceGetName", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                               "cuDeviceGetAttribute", "cuMemGetAllocationGranularity", "cuMemAddressReserve"}) {
    hostCudaFail(function, 1, kCuUnknown);
    const absl::Status refused = MakeCudaBackend(Options()).status();
    EXPECT_TRUE(absl::IsUnavailable(refused)) << function << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("device cuda:0 is not there"));
  }
}

}  // namespace
}  // namespace tensord::cuda
