// Mistakes that a backend can make, each of which the device shows, and the same right.

#include <csignal>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

constexpr int kN = 100001;
constexpr char kDivergent[] = R"(extern "C" __global__ void odd(double* x) {
  if (threadIdx.x < 40) __syncthreads();
  x[threadIdx.x] = 1;
})";

class HostHazardsTest : public HostDeviceTest {
 protected:
  void SetUp() override {
    HostDeviceTest::SetUp();
    cuda.hostCudaSet("DELAY_US", "3000");
  }

  // x on stream a, y = 3 x on b; true if the values are right. Right or wrong is a matter of chance if nobody waits.
  bool ScalesOnAnotherStream(bool waits) {
    const CuFunction scale = Kernel(kScale, "scale");
    CuAddress x = Device(kN * 8), y = Device(kN * 8);
    double *in = Pinned<double>(kN), *out = Pinned<double>(kN);
    long long n = kN;
    double k = 3;
    for (int i = 0; i < kN; ++i) in[i] = i;
    CuEvent event = nullptr;
    cuda.cuEventCreate(&event, kCuEventDisableTiming);
    EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(x, in, kN * 8, a), kCuSuccess);
    EXPECT_EQ(cuda.cuEventRecord(event, a), kCuSuccess);
    if (waits) {
      EXPECT_EQ(cuda.cuStreamWaitEvent(b, event, 0), kCuSuccess);
    }
    EXPECT_EQ(Launch(scale, b, 40, 256, {&x, &y, &n, &k}), kCuSuccess);
    EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(out, y, kN * 8, b), kCuSuccess);
    EXPECT_EQ(cuda.cuCtxSynchronize(), kCuSuccess);
    for (int i = 0; i < kN; ++i) {
      if (out[i] != 3.0 * i) return false;
    }
    return true;
  }

  bool ReusesStaging(bool waits) {
    const CuAddress x = Device(80), y = Device(80);
    double *in = Pinned<double>(10), *out = Pinned<double>(20);
    for (int i = 0; i < 10; ++i) in[i] = i;
    if (!waits) cuda.hostCudaSet("HOLD", "1");
    EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(x, in, 80, a), kCuSuccess);
    if (waits) {
      EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
    }
    for (int i = 0; i < 10; ++i) in[i] = 100 + i;
    cuda.hostCudaSet("HOLD", "0");
    EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(y, in, 80, a), kCuSuccess);
    EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(out, x, 80, a), kCuSuccess);
    EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(out + 10, y, 80, a), kCuSuccess);
    EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
    return out[3] == 3 && out[13] == 103;
  }

  // y = 2 x of so many elements more than there are.
  CuResult ScalePast(long long by) {
    const CuFunction scale = Kernel(kScale, "scale");
    CuAddress x = Device(kN * 8), y = Device(kN * 8);
    long long n = kN + by;
    double k = 2;
    EXPECT_EQ(Launch(scale, a, 40, 256, {&x, &y, &n, &k}), kCuSuccess);
    const CuResult result = cuda.cuStreamSynchronize(a);
    if (result == kCuSuccess) cuda.cuMemFree_v2(y);
    return result;
  }

  // True if one of some tries is so: delays are random.
  template <typename F>
  static bool HappensInTwenty(F happens) {
    for (int i = 0; i < 20; ++i) {
      if (happens()) return true;
    }
    return false;
  }
};

TEST_F(HostHazardsTest, StreamsThatWaitForEachOther) {
  EXPECT_FALSE(HappensInTwenty([&] { return !ScalesOnAnotherStream(true); }));
}

TEST_F(HostHazardsTest, StreamsThatDoNotWait) {
  EXPECT_TRUE(HappensInTwenty([&] { return !ScalesOnAnotherStream(false); }));
}

TEST_F(HostHazardsTest, StagingReusedAfterItIsRead) { EXPECT_TRUE(ReusesStaging(true)); }

TEST_F(HostHazardsTest, StagingReusedWhileItIsRead) { EXPECT_FALSE(ReusesStaging(false)); }

TEST_F(HostHazardsTest, KernelInsideAnAllocation) {
  const long overruns = cuda.hostCudaOverruns();
  EXPECT_EQ(ScalePast(0), kCuSuccess);
  EXPECT_EQ(cuda.hostCudaOverruns(), overruns);
}

TEST_F(HostHazardsTest, KernelJustPastAnAllocation) {
  const long overruns = cuda.hostCudaOverruns();
  EXPECT_EQ(ScalePast(4), kCuSuccess) << "memory ends at 256 bytes";
  EXPECT_EQ(cuda.hostCudaOverruns(), overruns + 1);
}

TEST_F(HostHazardsTest, KernelFarPastAnAllocation) {
  EXPECT_EQ(ScalePast(5000), kCuIllegalAddress);
  CuAddress x = 0;
  EXPECT_EQ(cuda.cuCtxSynchronize(), kCuIllegalAddress) << "the error stays";
  EXPECT_EQ(cuda.cuMemAlloc_v2(&x, 8), kCuIllegalAddress);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), kCuSuccess);
  EXPECT_EQ(cuda.cuCtxSynchronize(), kCuInvalidContext);
  Retain();
  EXPECT_EQ(ScalePast(0), kCuSuccess) << "the context is made anew";
}

TEST_F(HostHazardsTest, FreedMemoryRead) {
  const CuFunction scale = Kernel(kScale, "scale");
  CuAddress x = Device(kN * 8), y = Device(kN * 8);
  long long n = kN;
  double k = 3;
  EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
  EXPECT_EQ(Launch(scale, a, 40, 256, {&x, &y, &n, &k}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
}

TEST_F(HostHazardsTest, MemoryUnmappedBeforeItIsRead) {
  constexpr size_t kGranule = size_t{2} << 20;
  const CuFunction scale = Kernel(kScale, "scale");
  CuAddress x = 0, y = Device(kN * 8);
  CuAllocation allocation = 0;
  const CuMemAllocationProp prop;
  const CuMemAccessDesc access;
  ASSERT_EQ(cuda.cuMemAddressReserve(&x, kGranule, 0, 0, 0), kCuSuccess);
  ASSERT_EQ(cuda.cuMemCreate(&allocation, kGranule, &prop, 0), kCuSuccess);
  ASSERT_EQ(cuda.cuMemMap(x, kGranule, 0, allocation, 0), kCuSuccess);
  ASSERT_EQ(cuda.cuMemSetAccess(x, kGranule, &access, 1), kCuSuccess);
  long long n = kN;
  double k = 3;
  EXPECT_EQ(Launch(scale, a, 40, 256, {&x, &y, &n, &k}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
  cuda.hostCudaSet("HOLD", "1");
  EXPECT_EQ(Launch(scale, a, 40, 256, {&x, &y, &n, &k}), kCuSuccess);
  ASSERT_EQ(cuda.cuMemUnmap(x, kGranule), kCuSuccess);
  cuda.hostCudaSet("HOLD", "0");
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
}

TEST_F(HostHazardsTest, HostPointerGivenToAKernel) {
  const CuFunction scale = Kernel(kScale, "scale");
  std::vector<double> host(10);
  CuAddress x = reinterpret_cast<CuAddress>(host.data());
  long long n = 10;
  double k = 2;
  EXPECT_EQ(Launch(scale, a, 1, 256, {&x, &x, &n, &k}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
}

TEST_F(HostHazardsTest, NullGivenToAKernel) {
  const CuFunction scale = Kernel(kScale, "scale");
  CuAddress x = 0;
  long long n = 10;
  double k = 2;
  EXPECT_EQ(Launch(scale, a, 1, 256, {&x, &x, &n, &k}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
}

TEST_F(HostHazardsTest, TheHostTouchesDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        CuContext context = nullptr;
        CuAddress address = 0;
        cuda.cuInit(0);
        cuda.cuDevicePrimaryCtxRetain(&context, 0);
        cuda.cuCtxSetCurrent(context);
        if (cuda.cuMemAlloc_v2(&address, 100) == kCuSuccess) *reinterpret_cast<volatile char*>(address) = 1;
      },
      "");
}

TEST_F(HostHazardsTest, ABarrierThatSomeThreadsDoNotReach) {
  const CuFunction odd = Kernel(kDivergent, "odd");
  CuAddress x = Device(8 * 64);
  EXPECT_EQ(Launch(odd, a, 1, 64, {&x}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuLaunchFailed);
}

TEST_F(HostHazardsTest, ABarrierThatSomeWarpsDoNotReach) {
  const CuFunction early = Kernel(R"(extern "C" __global__ void early(double* x) {
  if (threadIdx.x >= 32) return;
  __syncthreads();
  x[threadIdx.x] = 1;
})",
                                  "early");
  CuAddress x = Device(8 * 64);
  EXPECT_EQ(Launch(early, a, 1, 64, {&x}), kCuSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuLaunchFailed);
}

TEST_F(HostHazardsTest, TooMuchLocalMemory) {
  const CuFunction large = Kernel(R"(extern "C" __global__ void large(double* x) {
  volatile double local[9000];
  for (int i = 0; i < 9000; ++i) local[i] = i;
  __syncthreads();
  x[threadIdx.x] = local[threadIdx.x];
})",
                                  "large");
  CuAddress x = Device(8 * 64);
  EXPECT_EQ(Launch(large, a, 1, 64, {&x}), kCuSuccess);
  EXPECT_NE(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostHazardsTest, MemoryUnpinnedBeforeItIsRead) {
  const CuAddress x = Device(8);
  alignas(4096) char host[4096];
  ASSERT_EQ(cuda.cuMemHostRegister_v2(host, 4096, 0), kCuSuccess);
  cuda.hostCudaSet("HOLD", "1");
  ASSERT_EQ(cuda.cuMemcpyHtoDAsync_v2(x, host, 8, a), kCuSuccess);
  ASSERT_EQ(cuda.cuMemHostUnregister(host), kCuSuccess);
  cuda.hostCudaSet("HOLD", "0");
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
}

}  // namespace
}  // namespace tensord::cuda
