// The driver's functions for memory: allocations, copies and fills.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "tests/hostcuda/host_calls.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_exports.h"
#include "tests/hostcuda/host_memory.h"
#include "tests/hostcuda/host_pinned.h"
#include "tests/hostcuda/host_streams.h"

namespace tensord::cuda {
namespace {

using host::DeviceMemory;
using host::PinnedMemory;

// Enqueues a copy of which `pinned` is the host's part. Memory that is not pinned is refused: CUDA would copy it before
// the call returns, or later, as it likes. It has to be pinned still when the stream comes to it.
CuResult EnqueueCopy(const char* what, const void* pinned, size_t bytes, CuStream handle, const host::Work& copy) {
  const auto stream = host::Streams().Find(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  if (bytes > 0 && !PinnedMemory::Get().Has(pinned, bytes)) return kCuInvalidValue;
  return stream->Push([work = host::DeviceWork(what, copy), pinned, bytes] {
    if (bytes == 0 || PinnedMemory::Get().Has(pinned, bytes)) {
      work();
    } else {
      host::Context::Get().Fail(kCuIllegalAddress);
    }
  });
}

// Tells whether device memory is wrong for a copy or a fill: CUDA knows that when it is called.
bool IsOutside(CuAddress address, size_t bytes) {
  return bytes > 0 && !DeviceMemory::Get().Has(DeviceMemory::Get().Reveal(address), bytes);
}

template <typename T>
CuResult EnqueueFill(CuAddress to, T value, size_t count, CuStream handle) {
  const auto stream = host::Streams().Find(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  if (to % sizeof(T) != 0 || count > SIZE_MAX / sizeof(T) || IsOutside(to, count * sizeof(T))) return kCuInvalidValue;
  T* const at = reinterpret_cast<T*>(DeviceMemory::Get().Reveal(to));
  return stream->Enqueue("a fill", [=] { std::fill(at, at + count, value); });
}

}  // namespace

HOST_CUDA_EXPORT CuResult cuMemGetInfo_v2(size_t* free, size_t* total) {
  HOST_ENTER_CONTEXT();
  *free = DeviceMemory::Get().free_bytes();
  *total = DeviceMemory::Get().total_bytes();
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuMemAlloc_v2(CuAddress* address, size_t bytes) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  return DeviceMemory::Get().Allocate(bytes, address);
}

// Waits for the device first, as CUDA does.
HOST_CUDA_EXPORT CuResult cuMemFree_v2(CuAddress address) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  host::DrainStreams(host::Context::Get());
  return DeviceMemory::Get().Free(address);
}

HOST_CUDA_EXPORT CuResult cuMemGetAllocationGranularity(size_t* bytes, const CuMemAllocationProp* prop, int) {
  HOST_ENTER_CONTEXT();
  if (prop == nullptr || prop->location.type != kCuMemLocationDevice) return kCuInvalidValue;
  *bytes = host::kGranuleBytes;
  return kCuSuccess;
}

HOST_CUDA_EXPORT CuResult cuMemAddressReserve(CuAddress* address, size_t bytes, size_t alignment, CuAddress,
                                              unsigned long long flags) {
  HOST_ENTER_CONTEXT();
  return flags != 0 ? kCuInvalidValue : DeviceMemory::Get().Reserve(bytes, alignment, address);
}

HOST_CUDA_EXPORT CuResult cuMemAddressFree(CuAddress address, size_t bytes) {
  HOST_ENTER_CONTEXT();
  return DeviceMemory::Get().Unreserve(address, bytes);
}

HOST_CUDA_EXPORT CuResult cuMemCreate(CuAllocation* allocation, size_t bytes, const CuMemAllocationProp* prop,
                                      unsigned long long flags) {
  HOST_ENTER_CONTEXT();
  if (flags != 0 || prop == nullptr || prop->type != kCuMemAllocationPinned ||
      prop->location.id != host::Context::Get().device() || prop->location.type != kCuMemLocationDevice) {
    return kCuInvalidValue;
  }
  return DeviceMemory::Get().Create(bytes, allocation);
}

HOST_CUDA_EXPORT CuResult cuMemRelease(CuAllocation allocation) {
  HOST_ENTER_CONTEXT();
  return DeviceMemory::Get().Release(allocation);
}

HOST_CUDA_EXPORT CuResult cuMemMap(CuAddress address, size_t bytes, size_t offset, CuAllocation allocation,
                                   unsigned long long flags) {
  HOST_ENTER_CONTEXT();
  return flags != 0 ? kCuInvalidValue : DeviceMemory::Get().Map(address, bytes, offset, allocation);
}

// Does not wait: nothing that is on its way may use the memory any more.
HOST_CUDA_EXPORT CuResult cuMemUnmap(CuAddress address, size_t bytes) {
  HOST_ENTER_CONTEXT();
  return DeviceMemory::Get().Unmap(address, bytes);
}

HOST_CUDA_EXPORT CuResult cuMemSetAccess(CuAddress address, size_t bytes, const CuMemAccessDesc* access, size_t count) {
  HOST_ENTER_CONTEXT();
  if (count != 1 || access == nullptr || access->location.type != kCuMemLocationDevice ||
      access->location.id != host::Context::Get().device() || access->flags != kCuMemAccessReadWrite) {
    return kCuInvalidValue;
  }
  return DeviceMemory::Get().SetAccess(address, bytes);
}

HOST_CUDA_EXPORT CuResult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  return PinnedMemory::Get().Allocate(bytes, memory);
}

HOST_CUDA_EXPORT CuResult cuMemFreeHost(void* memory) {
  HOST_ENTER_CONTEXT();
  if (host::CaptureForbids()) return kCuStreamCaptureUnsupported;
  host::DrainStreams(host::Context::Get());
  return PinnedMemory::Get().Free(memory);
}

HOST_CUDA_EXPORT CuResult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  HOST_ENTER_CONTEXT();
  return PinnedMemory::Get().Register(memory, bytes, flags);
}

HOST_CUDA_EXPORT CuResult cuMemHostUnregister(void* memory) {
  HOST_ENTER_CONTEXT();
  return PinnedMemory::Get().Unregister(memory);
}

HOST_CUDA_EXPORT CuResult cuMemcpyHtoDAsync_v2(CuAddress to, const void* from, size_t bytes, CuStream stream) {
  HOST_ENTER_CONTEXT();
  if (IsOutside(to, bytes)) return kCuInvalidValue;
  char* const target = DeviceMemory::Get().Reveal(to);
  host::Calls::Get().AddBytes(__func__, bytes);
  return EnqueueCopy("a copy to the device", from, bytes, stream, [=] { std::memcpy(target, from, bytes); });
}

HOST_CUDA_EXPORT CuResult cuMemcpyDtoHAsync_v2(void* to, CuAddress from, size_t bytes, CuStream stream) {
  HOST_ENTER_CONTEXT();
  if (IsOutside(from, bytes)) return kCuInvalidValue;
  const char* const source = DeviceMemory::Get().Reveal(from);
  host::Calls::Get().AddBytes(__func__, bytes);
  return EnqueueCopy("a copy from the device", to, bytes, stream, [=] { std::memcpy(to, source, bytes); });
}

HOST_CUDA_EXPORT CuResult cuMemcpyDtoDAsync_v2(CuAddress to, CuAddress from, size_t bytes, CuStream handle) {
  HOST_ENTER_CONTEXT();
  const auto stream = host::Streams().Find(handle);
  if (stream == nullptr) return kCuInvalidHandle;
  if (IsOutside(to, bytes) || IsOutside(from, bytes)) return kCuInvalidValue;
  char* const target = DeviceMemory::Get().Reveal(to);
  const char* const source = DeviceMemory::Get().Reveal(from);
  return stream->Enqueue("a copy on the device", [=] { std::memmove(target, source, bytes); });
}

HOST_CUDA_EXPORT CuResult cuMemsetD8Async(CuAddress to, unsigned char value, size_t count, CuStream stream) {
  HOST_ENTER_CONTEXT();
  return EnqueueFill<unsigned char>(to, value, count, stream);
}

HOST_CUDA_EXPORT CuResult cuMemsetD32Async(CuAddress to, unsigned value, size_t count, CuStream stream) {
  HOST_ENTER_CONTEXT();
  return EnqueueFill<unsigned>(to, value, count, stream);
}

}  // namespace tensord::cuda
