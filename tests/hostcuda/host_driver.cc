// The driver's functions for devices, contexts, streams, events, graphs and modules, and those of host_control.h.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "tests/hostcuda/access_checks.h"
#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_faults.h"
#include "tests/hostcuda/host_memory.h"
#include "tests/hostcuda/host_modules.h"
#include "tests/hostcuda/host_pinned.h"
#include "tests/hostcuda/host_settings.h"
#include "tests/hostcuda/host_streams.h"
#include "tests/hostcuda/library_objects.h"

namespace tensord::cuda {
namespace {

using host::Context;
using host::Settings;

struct ErrorName {
  CuResult error;
  const char* name;
};
constexpr ErrorName kErrorNames[] = {
    {kCuSuccess, "CUDA_SUCCESS"},
    {kCuInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
    {kCuOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {kCuNotInitialized, "CUDA_ERROR_NOT_INITIALIZED"},
    {kCuNoDevice, "CUDA_ERROR_NO_DEVICE"},
    {kCuInvalidDevice, "CUDA_ERROR_INVALID_DEVICE"},
    {kCuInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
    {kCuInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
    {kCuNoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {kCuInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
    {kCuNotFound, "CUDA_ERROR_NOT_FOUND"},
    {kCuNotReady, "CUDA_ERROR_NOT_READY"},
    {kCuIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {kCuHostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {kCuHostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {kCuLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
    {kCuStreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {kCuStreamCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {kCuUnknown, "CUDA_ERROR_UNKNOWN"},
};

int NumDevices() {
  return static_cast<int>(std::clamp<long>(Settings::Get().Number("DEVICES", 1), 0, host::kMostDevices));
}

bool IsDevice(CuDevice device) { return device >= 0 && device < NumDevices(); }

// Ends a primary context with all that is its own.
void DestroyContext(Context& context) {
  host::DrainStreams(context);
  host::Streams().Clear(context);
  host::Events().Clear(context);
  host::GraphExecs().Clear(context);
  host::Graphs().Clear(context);
  host::Functions().Clear(context);
  host::Modules().Clear(context);
  host::DeviceMemory::Get().Clear(context);
  host::PinnedMemory::Get().Clear(context);
  context.Destroy();
}

// The device has no default stream: work that names none is a mistake.
std::shared_ptr<CuStreamObject> FindStream(CuStream stream) { return host::Streams().Find(stream); }

std::shared_ptr<host::Mark> MarkOf(CuEventObject* event) {
  std::lock_guard lock(event->mutex);
  return event->mark;
}

}  // namespace

HOST_CUDA_EXPORT CuResult cuInit(unsigned flags) {
  if (const int injected = host::Calls::Get().Count(__func__, kCuNoDevice); injected != 0) return injected;
  if (flags != 0) return kCuInvalidValue;
  if (NumDevices() == 0) return kCuNoDevice;
  host::CatchFaults();
  Context::Initialize();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuGetErrorName(CuResult error, const char** name) {
  if (const int injected = host::Calls::Get().Count(__func__, kCuInvalidValue); injected != 0) return injected;
  const auto* it =
      std::find_if(std::begin(kErrorNames), std::end(kErrorNames), [error](ErrorName e) { return e.error == error; });
  *name = it == std::end(kErrorNames) ? nullptr : it->name;
  return *name == nullptr ? kCuInvalidValue : kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDriverGetVersion(int* version) {
  if (const int injected = host::Calls::Get().Count(__func__, kCuInvalidValue); injected != 0) return injected;
  *version = static_cast<int>(Settings::Get().Number("DRIVER_VERSION", 13000));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDeviceGetCount(int* count) {
  HOST_ENTER_DRIVER();
  *count = NumDevices();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDeviceGet(CuDevice* device, int ordinal) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(ordinal)) return kCuInvalidDevice;
  *device = ordinal;
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDeviceGetName(char* name, int bytes, CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  if (bytes <= 0) return kCuInvalidValue;
  std::snprintf(name, static_cast<size_t>(bytes), "host CUDA device");
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDeviceTotalMem_v2(size_t* bytes, CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  *bytes = host::DeviceMemory::Get().total_bytes();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  switch (attribute) {
    case kCuMaxThreadsPerBlock:
      *value = 1024;
      return kCuSuccess;
    case kCuMaxSharedMemoryPerBlock:
      *value = host::kSharedBytes;
      return kCuSuccess;
    case kCuWarpSize:
      *value = 32;
      return kCuSuccess;
    case kCuMultiprocessorCount:
      *value = static_cast<int>(Settings::Get().Number("MULTIPROCESSORS", 132));
      return kCuSuccess;
    case kCuComputeCapabilityMajor:
      *value = host::ComputeCapability() / 10;
      return kCuSuccess;
    case kCuComputeCapabilityMinor:
      *value = host::ComputeCapability() % 10;
      return kCuSuccess;
    case kCuMaxSharedMemoryPerBlockOptin:
      *value = host::kMaxSharedBytes;
      return kCuSuccess;
    case kCuVirtualMemoryManagementSupported:
      *value = static_cast<int>(Settings::Get().Number("VIRTUAL_MEMORY", 1));
      return kCuSuccess;
    default:
      return kCuInvalidValue;
  }
}

HOST_CUDA_EXPORT CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  *context = Context::Of(device).Retain();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDevicePrimaryCtxRelease_v2(CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  if (Context::Of(device).Release()) DestroyContext(Context::Of(device));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuDevicePrimaryCtxReset_v2(CuDevice device) {
  HOST_ENTER_DRIVER();
  if (!IsDevice(device)) return kCuInvalidDevice;
  DestroyContext(Context::Of(device));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuCtxGetCurrent(CuContext* context) {
  HOST_ENTER_DRIVER();
  *context = Context::Current();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuCtxSetCurrent(CuContext context) {
  HOST_ENTER_DRIVER();
  return Context::SetCurrent(context);
}

HOST_CUDA_EXPORT CuResult cuCtxSynchronize() {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  host::DrainStreams(Context::Get());
  return Context::Get().error();
}

HOST_CUDA_EXPORT CuResult cuStreamCreate(CuStream* stream, unsigned) {
  HOST_ENTER_CONTEXT();
  *stream = host::Streams().Add(std::make_shared<CuStreamObject>());
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuStreamDestroy_v2(CuStream handle) {
  HOST_ENTER_CONTEXT();
  const auto stream = host::Streams().Take(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  stream->Drain();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuStreamSynchronize(CuStream handle) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  if (stream->RefusesInCapture()) return kCuStreamCaptureUnsupported;
  stream->Drain();
  return Context::Get().error();
}

HOST_CUDA_EXPORT CuResult cuStreamQuery(CuStream handle) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  if (stream->RefusesInCapture()) return kCuStreamCaptureUnsupported;
  return stream->IsIdle() ? Context::Get().error() : kCuNotReady;
}

// Events in captures fork and join graphs of several streams, which the device does not have.
HOST_CUDA_EXPORT CuResult cuStreamWaitEvent(CuStream handle, CuEvent event_handle, unsigned flags) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  const auto event = host::Events().Find(event_handle);
  if (stream == nullptr || event == nullptr) return kCuInvalidHandle;
  if (flags != 0) return kCuInvalidValue;
  if (stream->RefusesInCapture()) return kCuStreamCaptureUnsupported;
  const std::shared_ptr<host::Mark> mark = MarkOf(event.get());
  if (mark == nullptr) return kCuSuccess;
  return stream->Push([mark] { mark->Wait(); });
}

HOST_CUDA_EXPORT CuResult cuEventCreate(CuEvent* event, unsigned flags) {
  HOST_ENTER_CONTEXT();
  auto made = std::make_shared<CuEventObject>();
  made->has_time = (flags & kCuEventDisableTiming) == 0;
  *event = host::Events().Add(std::move(made));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuEventDestroy_v2(CuEvent event) {
  HOST_ENTER_CONTEXT();
  return host::Events().Take(event) == nullptr ? kCuInvalidHandle : kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuEventRecord(CuEvent event_handle, CuStream handle) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  const auto event = host::Events().Find(event_handle);
  if (stream == nullptr || event == nullptr) return kCuInvalidHandle;
  if (stream->RefusesInCapture()) return kCuStreamCaptureUnsupported;
  auto mark = std::make_shared<host::Mark>();
  std::lock_guard lock(event->mutex);
  event->mark = mark;
  return stream->Push([mark] { mark->Set(); });
}

HOST_CUDA_EXPORT CuResult cuEventQuery(CuEvent handle) {
  HOST_ENTER_CONTEXT();
  const auto event = host::Events().Find(handle);
  if (event == nullptr) return kCuInvalidHandle;
  const std::shared_ptr<host::Mark> mark = MarkOf(event.get());
  return mark == nullptr || mark->IsSet() ? Context::Get().error() : kCuNotReady;
}

HOST_CUDA_EXPORT CuResult cuEventSynchronize(CuEvent handle) {
  HOST_ENTER_CONTEXT();
  const auto event = host::Events().Find(handle);
  if (event == nullptr) return kCuInvalidHandle;
  if (const std::shared_ptr<host::Mark> mark = MarkOf(event.get()); mark != nullptr) mark->Wait();
  return Context::Get().error();
}

HOST_CUDA_EXPORT CuResult cuEventElapsedTime(float* milliseconds, CuEvent begin_handle, CuEvent end_handle) {
  HOST_ENTER_CONTEXT();
  const auto begin = host::Events().Find(begin_handle), end = host::Events().Find(end_handle);
  if (begin == nullptr || end == nullptr || !begin->has_time || !end->has_time) return kCuInvalidHandle;
  const auto from = MarkOf(begin.get()), to = MarkOf(end.get());
  if (from == nullptr || to == nullptr) return kCuInvalidHandle;
  if (!from->IsSet() || !to->IsSet()) return kCuNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(to->time() - from->time()).count();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuModuleLoadData(CuModule* module, const void* image) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  std::shared_ptr<CuModuleObject> loaded;
  if (const CuResult result = host::LoadModule(image, &loaded); result != kCuSuccess) return result;
  *module = host::Modules().Add(std::move(loaded));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuModuleUnload(CuModule handle) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  const auto module = host::Modules().Take(handle);
  if (module == nullptr) return kCuInvalidHandle;
  host::DrainStreams(Context::Get());
  std::lock_guard lock(module->mutex);
  for (const auto& [name, function] : module->functions) host::Functions().Take(function);
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuModuleGetFunction(CuFunction* function, CuModule handle, const char* name) {
  HOST_ENTER_CONTEXT();
  const auto module = host::Modules().Find(handle);
  return module == nullptr ? kCuInvalidHandle : host::FindFunction(module, name, function);
}

// A kernel has no registers and no local memory here.
HOST_CUDA_EXPORT CuResult cuFuncGetAttribute(int* value, int attribute, CuFunction handle) {
  HOST_ENTER_CONTEXT();
  const auto function = host::Functions().Find(handle);
  if (function == nullptr) return kCuInvalidHandle;
  switch (attribute) {
    case kCuFuncSharedSizeBytes:
      *value = 0;
      return kCuSuccess;
    case kCuFuncLocalSizeBytes:
      *value = static_cast<int>(Settings::Get().Number("LOCAL_BYTES", 0));
      return kCuSuccess;
    case kCuFuncNumRegs:
      *value = static_cast<int>(Settings::Get().Number("REGISTERS", 32));
      return kCuSuccess;
    case kCuFuncMaxDynamicSharedSizeBytes:
      *value = function->max_dynamic_shared;
      return kCuSuccess;
    default:
      return kCuInvalidValue;
  }
}

HOST_CUDA_EXPORT CuResult cuFuncSetAttribute(CuFunction handle, int attribute, int value) {
  HOST_ENTER_CONTEXT();
  const auto function = host::Functions().Find(handle);
  if (function == nullptr) return kCuInvalidHandle;
  if (attribute != kCuFuncMaxDynamicSharedSizeBytes || value < 0 || value > host::kMaxSharedBytes) {
    return kCuInvalidValue;
  }
  function->max_dynamic_shared = value;
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuLaunchKernel(CuFunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                         CuStream stream_handle, void** arguments, void** extra) {
  HOST_ENTER_CONTEXT();
  const auto function = host::Functions().Find(handle);
  const auto stream = FindStream(stream_handle);
  if (function == nullptr || stream == nullptr) return kCuInvalidHandle;
  if (extra != nullptr) return kCuInvalidValue;
  const host::Launch launch = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  return host::EnqueueLaunch(function, launch, arguments, stream.get());
}

HOST_CUDA_EXPORT CuResult cuStreamBeginCapture_v2(CuStream handle, int mode) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  return stream == nullptr ? kCuInvalidHandle : stream->BeginCapture(mode);
}

HOST_CUDA_EXPORT CuResult cuStreamEndCapture(CuStream handle, CuGraph* graph) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  std::shared_ptr<CuGraphObject> captured;
  *graph = nullptr;
  if (const CuResult result = stream->EndCapture(&captured); result != kCuSuccess) return result;
  *graph = host::Graphs().Add(std::move(captured));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuStreamIsCapturing(CuStream handle, int* status) {
  HOST_ENTER_CONTEXT();
  const auto stream = FindStream(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  *status = stream->capture_status();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuGraphGetNodes(CuGraph handle, CuGraphNode* nodes, size_t* num_nodes) {
  HOST_ENTER_CONTEXT();
  const auto graph = host::Graphs().Find(handle);
  if (graph == nullptr || num_nodes == nullptr || nodes != nullptr) return kCuInvalidValue;
  *num_nodes = graph->nodes.size();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuGraphInstantiateWithFlags(CuGraphExec* exec, CuGraph handle, unsigned long long flags) {
  HOST_ENTER_CONTEXT();
  const auto graph = host::Graphs().Find(handle);
  if (graph == nullptr) return kCuInvalidHandle;
  if (flags != 0) return kCuInvalidValue;
  auto made = std::make_shared<CuGraphExecObject>();
  made->nodes = graph->nodes;
  *exec = host::GraphExecs().Add(std::move(made));
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuGraphLaunch(CuGraphExec handle, CuStream stream_handle) {
  HOST_ENTER_CONTEXT();
  const auto exec = host::GraphExecs().Find(handle);
  const auto stream = FindStream(stream_handle);
  if (exec == nullptr || stream == nullptr) return kCuInvalidHandle;
  if (stream->RefusesInCapture()) return kCuStreamCaptureUnsupported;
  return stream->Push([exec] {
    std::lock_guard lock(exec->running);
    for (const host::Work& node : exec->nodes) node();
  });
}

HOST_CUDA_EXPORT CuResult cuGraphDestroy(CuGraph graph) {
  HOST_ENTER_CONTEXT();
  return host::Graphs().Take(graph) == nullptr ? kCuInvalidHandle : kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuGraphExecDestroy(CuGraphExec exec) {
  HOST_ENTER_CONTEXT();
  return host::GraphExecs().Take(exec) == nullptr ? kCuInvalidHandle : kCuSuccess;
}

HOST_CUDA_EXPORT void hostCudaSet(const char* name, const char* value) { Settings::Get().Set(name, value); }
HOST_CUDA_EXPORT void hostCudaFail(const char* function, long n, int result) {
  host::Calls::Get().Fail(function, n, result);
}
HOST_CUDA_EXPORT long hostCudaCalls(const char* function) { return host::Calls::Get().Of(function); }
HOST_CUDA_EXPORT long hostCudaBytes(const char* function) { return host::Calls::Get().BytesOf(function); }
HOST_CUDA_EXPORT long hostCudaLiveMemory() { return host::DeviceMemory::Get().live(); }
HOST_CUDA_EXPORT long hostCudaLivePinned() { return host::PinnedMemory::Get().live(); }
HOST_CUDA_EXPORT long hostCudaLiveHandles() {
  return static_cast<long>(host::Streams().size() + host::Events().size() + host::Graphs().size() +
                           host::GraphExecs().size() + host::Modules().size());
}
HOST_CUDA_EXPORT long hostCudaLiveObjects() {
  return static_cast<long>(host::LiveBlasLtObjects() + host::LiveBlasObjects() + host::LiveSolverObjects() +
                           host::LiveFftPlans());
}
HOST_CUDA_EXPORT long hostCudaOverruns() { return host::DeviceMemory::Get().overruns(); }
HOST_CUDA_EXPORT long hostCudaProblems() { return host::AllProblems(); }
HOST_CUDA_EXPORT void hostCudaTakeCounts(HostCounts* counts) { *counts = host::TakeCounts(); }

}  // namespace tensord::cuda
