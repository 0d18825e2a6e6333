#include <set>
#include <string>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

using HostFailuresTest = HostDeviceTest;

TEST_F(HostFailuresTest, ACallFailsWhereATestWantsIt) {
  CuAddress x = 0, y = 0, z = 0;
  const long calls = cuda.hostCudaCalls("cuMemAlloc_v2");
  cuda.hostCudaFail("cuMemAlloc_v2", 2, 0);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&x, 100), kCuSuccess);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&y, 100), kCuOutOfMemory);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&z, 100), kCuSuccess);
  EXPECT_EQ(y, 0u);
  EXPECT_EQ(cuda.hostCudaCalls("cuMemAlloc_v2"), calls + 3);
  EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
  EXPECT_EQ(cuda.cuMemFree_v2(z), kCuSuccess);
  EXPECT_EQ(cuda.hostCudaLiveMemory(), 0);
}

TEST_F(HostFailuresTest, EachCallFailsUntilATestHasSeenEnough) {
  CuAddress x = 0;
  cuda.hostCudaFail("cuMemAlloc_v2", 0, 0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cuda.cuMemAlloc_v2(&x, 100), kCuOutOfMemory);
  cuda.hostCudaFail("", 0, 0);
  EXPECT_EQ(cuda.cuMemAlloc_v2(&x, 100), kCuSuccess);
  EXPECT_EQ(cuda.cuMemFree_v2(x), kCuSuccess);
}

TEST_F(HostFailuresTest, OneCallOfEachFunctionCanFail) {
  cuda.hostCudaFail("cuStreamSynchronize", 1, kCuUnknown);
  cuda.hostCudaFail("cuCtxSynchronize", 1, kCuNotReady);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuUnknown);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
  EXPECT_EQ(cuda.cuCtxSynchronize(), kCuNotReady);
  EXPECT_EQ(cuda.cuCtxSynchronize(), kCuSuccess);
  cuda.hostCudaFail("cuStreamSynchronize", 1, kCuUnknown);
  cuda.hostCudaFail("", 0, 0);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostFailuresTest, AnErrorOfTheContextStays) {
  cuda.hostCudaFail("cuStreamSynchronize", 1, kCuLaunchFailed);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuLaunchFailed);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuLaunchFailed);
  EXPECT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), kCuSuccess);
  Retain();
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

// Each function that a working program calls can be made to fail, and says so.
TEST_F(HostFailuresTest, EachFunctionCanFail) {
  CuDevice device = 0;
  CuContext context = nullptr;
  int number = 0;
  char name[64];
  size_t bytes = 0, total = 0;
  void* memory = nullptr;
  CuEvent event = nullptr;
  CuAddress address = 0;
  const CuMemAllocationProp prop;
  std::set<std::string> failed;
#define TENSORD_EXPECT_FAILURE(name, ...)  \
  failed.insert(#name);                    \
  cuda.hostCudaFail(#name, 1, kCuUnknown); \
  EXPECT_EQ(cuda.name(__VA_ARGS__), kCuUnknown) << #name
  TENSORD_EXPECT_FAILURE(cuInit, 0);
  TENSORD_EXPECT_FAILURE(cuDriverGetVersion, &number);
  TENSORD_EXPECT_FAILURE(cuDeviceGetCount, &number);
  TENSORD_EXPECT_FAILURE(cuDeviceGet, &device, 0);
  TENSORD_EXPECT_FAILURE(cuDeviceGetName, name, 64, 0);
  TENSORD_EXPECT_FAILURE(cuDeviceTotalMem_v2, &bytes, 0);
  TENSORD_EXPECT_FAILURE(cuDeviceGetAttribute, &number, kCuWarpSize, 0);
  TENSORD_EXPECT_FAILURE(cuDevicePrimaryCtxRetain, &context, 0);
  TENSORD_EXPECT_FAILURE(cuDevicePrimaryCtxRelease_v2, 0);
  TENSORD_EXPECT_FAILURE(cuDevicePrimaryCtxReset_v2, 0);
  TENSORD_EXPECT_FAILURE(cuCtxGetCurrent, &context);
  TENSORD_EXPECT_FAILURE(cuCtxSetCurrent, nullptr);
  TENSORD_EXPECT_FAILURE(cuCtxSynchronize);
  TENSORD_EXPECT_FAILURE(cuMemGetInfo_v2, &bytes, &total);
  TENSORD_EXPECT_FAILURE(cuMemAlloc_v2, &address, 1);
  TENSORD_EXPECT_FAILURE(cuMemFree_v2, address);
  TENSORD_EXPECT_FAILURE(cuMemGetAllocationGranularity, &bytes, &prop, 0);
  TENSORD_EXPECT_FAILURE(cuMemAddressReserve, &address, 2 << 20, 0, 0, 0);
  TENSORD_EXPECT_FAILURE(cuMemAddressFree, 0, 0);
  TENSORD_EXPECT_FAILURE(cuMemCreate, &address, 2 << 20, &prop, 0);
  TENSORD_EXPECT_FAILURE(cuMemRelease, 0);
  TENSORD_EXPECT_FAILURE(cuMemMap, 0, 0, 0, 0, 0);
  TENSORD_EXPECT_FAILURE(cuMemUnmap, 0, 0);
  TENSORD_EXPECT_FAILURE(cuMemSetAccess, 0, 0, nullptr, 1);
  TENSORD_EXPECT_FAILURE(cuMemHostAlloc, &memory, 1, 0);
  TENSORD_EXPECT_FAILURE(cuMemFreeHost, nullptr);
  TENSORD_EXPECT_FAILURE(cuMemHostRegister_v2, name, 64, 0);
  TENSORD_EXPECT_FAILURE(cuMemHostUnregister, name);
  TENSORD_EXPECT_FAILURE(cuMemcpyHtoDAsync_v2, 0, nullptr, 0, a);
  TENSORD_EXPECT_FAILURE(cuMemcpyDtoHAsync_v2, nullptr, 0, 0, a);
  TENSORD_EXPECT_FAILURE(cuMemcpyDtoDAsync_v2, 0, 0, 0, a);
  TENSORD_EXPECT_FAILURE(cuMemsetD8Async, 0, 0, 0, a);
  TENSORD_EXPECT_FAILURE(cuMemsetD32Async, 0, 0, 0, a);
  TENSORD_EXPECT_FAILURE(cuStreamCreate, &b, 0);
  TENSORD_EXPECT_FAILURE(cuStreamDestroy_v2, b);
  TENSORD_EXPECT_FAILURE(cuStreamSynchronize, a);
  TENSORD_EXPECT_FAILURE(cuStreamQuery, a);
  TENSORD_EXPECT_FAILURE(cuStreamWaitEvent, a, nullptr, 0);
  TENSORD_EXPECT_FAILURE(cuEventCreate, &event, 0);
  TENSORD_EXPECT_FAILURE(cuEventDestroy_v2, nullptr);
  TENSORD_EXPECT_FAILURE(cuEventRecord, nullptr, a);
  TENSORD_EXPECT_FAILURE(cuEventQuery, nullptr);
  TENSORD_EXPECT_FAILURE(cuEventSynchronize, nullptr);
  TENSORD_EXPECT_FAILURE(cuEventElapsedTime, nullptr, nullptr, nullptr);
  TENSORD_EXPECT_FAILURE(cuModuleLoadData, nullptr, nullptr);
  TENSORD_EXPECT_FAILURE(cuModuleUnload, nullptr);
  TENSORD_EXPECT_FAILURE(cuModuleGetFunction, nullptr, nullptr, nullptr);
  TENSORD_EXPECT_FAILURE(cuFuncGetAttribute, nullptr, 0, nullptr);
  TENSORD_EXPECT_FAILURE(cuFuncSetAttribute, nullptr, 0, 0);
  TENSORD_EXPECT_FAILURE(cuLaunchKernel, nullptr, 1, 1, 1, 1, 1, 1, 0, a, nullptr, nullptr);
  TENSORD_EXPECT_FAILURE(cuStreamBeginCapture_v2, a, 0);
  TENSORD_EXPECT_FAILURE(cuStreamEndCapture, a, nullptr);
  TENSORD_EXPECT_FAILURE(cuStreamIsCapturing, a, nullptr);
  TENSORD_EXPECT_FAILURE(cuGraphInstantiateWithFlags, nullptr, nullptr, 0);
  TENSORD_EXPECT_FAILURE(cuGraphGetNodes, nullptr, nullptr, nullptr);
  TENSORD_EXPECT_FAILURE(cuGraphLaunch, nullptr, a);
  TENSORD_EXPECT_FAILURE(cuGraphDestroy, nullptr);
  TENSORD_EXPECT_FAILURE(cuGraphExecDestroy, nullptr);
  TENSORD_EXPECT_FAILURE(cuGetErrorName, kCuUnknown, nullptr);
#undef TENSORD_EXPECT_FAILURE
  for (const char* const function : {
#define TENSORD_NAME(name, result, arguments) #name,
           TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_NAME)
#undef TENSORD_NAME
       }) {
    EXPECT_TRUE(failed.contains(function)) << function << " is not above";
  }
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
}

TEST_F(HostFailuresTest, ErrorsHaveNames) {
  const char* name = nullptr;
  EXPECT_EQ(cuda.cuGetErrorName(kCuIllegalAddress, &name), kCuSuccess);
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(cuda.cuGetErrorName(12345, &name), kCuInvalidValue);
  EXPECT_EQ(name, nullptr);
}

}  // namespace
}  // namespace tensord::cuda
