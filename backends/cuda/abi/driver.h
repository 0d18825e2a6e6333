#ifndef TENSORD_BACKENDS_CUDA_ABI_DRIVER_H_
#define TENSORD_BACKENDS_CUDA_ABI_DRIVER_H_

#include <cstddef>

namespace tensord::cuda {

// The driver's interface (libcuda.so.1), declared by ourselves: no toolkit is needed to build. Enumerations are ints;
// names and values are NVIDIA's. The test abi_test compares all of it with NVIDIA's headers if the machine has them.
using CuResult = int;
using CuDevice = int;
using CuAddress = unsigned long long;
using CuAllocation = unsigned long long;
using CuContext = struct CuContextObject*;
using CuModule = struct CuModuleObject*;
using CuFunction = struct CuFunctionObject*;
using CuStream = struct CuStreamObject*;
using CuEvent = struct CuEventObject*;
using CuGraph = struct CuGraphObject*;
using CuGraphNode = struct CuGraphNodeObject*;
using CuGraphExec = struct CuGraphExecObject*;

// CUresult.
inline constexpr CuResult kCuSuccess = 0;
inline constexpr CuResult kCuInvalidValue = 1;
inline constexpr CuResult kCuOutOfMemory = 2;
inline constexpr CuResult kCuNotInitialized = 3;
inline constexpr CuResult kCuNoDevice = 100;
inline constexpr CuResult kCuInvalidDevice = 101;
inline constexpr CuResult kCuInvalidImage = 200;
inline constexpr CuResult kCuInvalidContext = 201;
inline constexpr CuResult kCuNoBinaryForGpu = 209;
inline constexpr CuResult kCuInvalidHandle = 400;
inline constexpr CuResult kCuNotFound = 500;
inline constexpr CuResult kCuNotReady = 600;
inline constexpr CuResult kCuIllegalAddress = 700;
inline constexpr CuResult kCuHostMemoryAlreadyRegistered = 712;
inline constexpr CuResult kCuHostMemoryNotRegistered = 713;
inline constexpr CuResult kCuLaunchFailed = 719;
inline constexpr CuResult kCuStreamCaptureUnsupported = 900;
inline constexpr CuResult kCuStreamCaptureInvalidated = 901;
inline constexpr CuResult kCuUnknown = 999;

// CUdevice_attribute.
inline constexpr int kCuMaxThreadsPerBlock = 1;
inline constexpr int kCuMaxSharedMemoryPerBlock = 8;
inline constexpr int kCuWarpSize = 10;
inline constexpr int kCuMultiprocessorCount = 16;
inline constexpr int kCuComputeCapabilityMajor = 75;
inline constexpr int kCuComputeCapabilityMinor = 76;
inline constexpr int kCuMaxSharedMemoryPerBlockOptin = 97;
inline constexpr int kCuVirtualMemoryManagementSupported = 102;

// CUfunction_attribute.
inline constexpr int kCuFuncSharedSizeBytes = 1;
inline constexpr int kCuFuncLocalSizeBytes = 3;
inline constexpr int kCuFuncNumRegs = 4;
inline constexpr int kCuFuncMaxDynamicSharedSizeBytes = 8;

// Flags.
inline constexpr unsigned kCuStreamNonBlocking = 1;
inline constexpr unsigned kCuEventBlockingSync = 1;
inline constexpr unsigned kCuEventDisableTiming = 2;
inline constexpr int kCuCaptureGlobal = 0, kCuCaptureThreadLocal = 1, kCuCaptureRelaxed = 2;
inline constexpr int kCuCaptureStatusNone = 0, kCuCaptureStatusActive = 1, kCuCaptureStatusInvalidated = 2;
inline constexpr unsigned kCuMemHostRegisterPortable = 1;
inline constexpr int kCuMemAllocationPinned = 1, kCuMemLocationDevice = 1, kCuMemAccessReadWrite = 3;
inline constexpr int kCuMemGranularityMinimum = 0;

struct CuMemLocation {
  int type = kCuMemLocationDevice;
  int id = 0;
};

// CUmemAllocationProp.
struct CuMemAllocationProp {
  int type = kCuMemAllocationPinned;
  int requested_handle_types = 0;
  CuMemLocation location;
  void* win32_handle_metadata = nullptr;
  struct {
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } alloc_flags;
};

// CUmemAccessDesc.
struct CuMemAccessDesc {
  CuMemLocation location;
  int flags = kCuMemAccessReadWrite;
};

// Each function as F(name, result, (arguments)).
#define TENSORD_CUDA_DRIVER_FUNCTIONS(F)                                                                         \
  F(cuInit, CuResult, (unsigned flags))                                                                          \
  F(cuGetErrorName, CuResult, (CuResult error, const char** name))                                               \
  F(cuDriverGetVersion, CuResult, (int* version))                                                                \
  F(cuDeviceGetCount, CuResult, (int* count))                                                                    \
  F(cuDeviceGet, CuResult, (CuDevice * device, int ordinal))                                                     \
  F(cuDeviceGetName, CuResult, (char* name, int bytes, CuDevice device))                                         \
  F(cuDeviceTotalMem_v2, CuResult, (size_t * bytes, CuDevice device))                                            \
  F(cuDeviceGetAttribute, CuResult, (int* value, int attribute, CuDevice device))                                \
  F(cuDevicePrimaryCtxRetain, CuResult, (CuContext * context, CuDevice device))                                  \
  F(cuDevicePrimaryCtxRelease_v2, CuResult, (CuDevice device))                                                   \
  F(cuDevicePrimaryCtxReset_v2, CuResult, (CuDevice device))                                                     \
  F(cuCtxGetCurrent, CuResult, (CuContext * context))                                                            \
  F(cuCtxSetCurrent, CuResult, (CuContext context))                                                              \
  F(cuCtxSynchronize, CuResult, ())                                                                              \
  F(cuMemGetInfo_v2, CuResult, (size_t * free, size_t * total))                                                  \
  F(cuMemAlloc_v2, CuResult, (CuAddress * address, size_t bytes))                                                \
  F(cuMemFree_v2, CuResult, (CuAddress address))                                                                 \
  F(cuMemGetAllocationGranularity, CuResult, (size_t * bytes, const CuMemAllocationProp* prop, int option))      \
  F(cuMemAddressReserve, CuResult,                                                                               \
    (CuAddress * address, size_t bytes, size_t alignment, CuAddress wanted, unsigned long long flags))           \
  F(cuMemAddressFree, CuResult, (CuAddress address, size_t bytes))                                               \
  F(cuMemCreate, CuResult,                                                                                       \
    (CuAllocation * allocation, size_t bytes, const CuMemAllocationProp* prop, unsigned long long flags))        \
  F(cuMemRelease, CuResult, (CuAllocation allocation))                                                           \
  F(cuMemMap, CuResult,                                                                                          \
    (CuAddress address, size_t bytes, size_t offset, CuAllocation allocation, unsigned long long flags))         \
  F(cuMemUnmap, CuResult, (CuAddress address, size_t bytes))                                                     \
  F(cuMemSetAccess, CuResult, (CuAddress address, size_t bytes, const CuMemAccessDesc* access, size_t count))    \
  F(cuMemHostAlloc, CuResult, (void** memory, size_t bytes, unsigned flags))                                     \
  F(cuMemFreeHost, CuResult, (void* memory))                                                                     \
  F(cuMemHostRegister_v2, CuResult, (void* memory, size_t bytes, unsigned flags))                                \
  F(cuMemHostUnregister, CuResult, (void* memory))                                                               \
  F(cuMemcpyHtoDAsync_v2, CuResult, (CuAddress to, const void* from, size_t bytes, CuStream stream))             \
  F(cuMemcpyDtoHAsync_v2, CuResult, (void* to, CuAddress from, size_t bytes, CuStream stream))                   \
  F(cuMemcpyDtoDAsync_v2, CuResult, (CuAddress to, CuAddress from, size_t bytes, CuStream stream))               \
  F(cuMemsetD8Async, CuResult, (CuAddress to, unsigned char value, size_t count, CuStream stream))               \
  F(cuMemsetD32Async, CuResult, (CuAddress to, unsigned value, size_t count, CuStream stream))                   \
  F(cuStreamCreate, CuResult, (CuStream * stream, unsigned flags))                                               \
  F(cuStreamDestroy_v2, CuResult, (CuStream stream))                                                             \
  F(cuStreamSynchronize, CuResult, (CuStream stream))                                                            \
  F(cuStreamQuery, CuResult, (CuStream stream))                                                                  \
  F(cuStreamWaitEvent, CuResult, (CuStream stream, CuEvent event, unsigned flags))                               \
  F(cuEventCreate, CuResult, (CuEvent * event, unsigned flags))                                                  \
  F(cuEventDestroy_v2, CuResult, (CuEvent event))                                                                \
  F(cuEventRecord, CuResult, (CuEvent event, CuStream stream))                                                   \
  F(cuEventQuery, CuResult, (CuEvent event))                                                                     \
  F(cuEventSynchronize, CuResult, (CuEvent event))                                                               \
  F(cuEventElapsedTime, CuResult, (float* milliseconds, CuEvent begin, CuEvent end))                             \
  F(cuModuleLoadData, CuResult, (CuModule * module, const void* image))                                          \
  F(cuModuleUnload, CuResult, (CuModule module))                                                                 \
  F(cuModuleGetFunction, CuResult, (CuFunction * function, CuModule module, const char* name))                   \
  F(cuFuncGetAttribute, CuResult, (int* value, int attribute, CuFunction function))                              \
  F(cuFuncSetAttribute, CuResult, (CuFunction function, int attribute, int value))                               \
  F(cuLaunchKernel, CuResult,                                                                                    \
    (CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_bytes, CuStream stream, void** arguments, void** extra))                  \
  F(cuStreamBeginCapture_v2, CuResult, (CuStream stream, int mode))                                              \
  F(cuStreamEndCapture, CuResult, (CuStream stream, CuGraph * graph))                                            \
  F(cuStreamIsCapturing, CuResult, (CuStream stream, int* status))                                               \
  F(cuGraphGetNodes, CuResult, (CuGraph graph, CuGraphNode * nodes, size_t * num_nodes))                         \
  F(cuGraphInstantiateWithFlags, CuResult, (CuGraphExec * exec, CuGraph graph, unsigned long long flags))        \
  F(cuGraphLaunch, CuResult, (CuGraphExec exec, CuStream stream))                                                \
  F(cuGraphDestroy, CuResult, (CuGraph graph))                                                                   \
  F(cuGraphExecDestroy, CuResult, (CuGraphExec exec))

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_ABI_DRIVER_H_
