#ifndef TENSORD_TESTS_HOSTCUDA_DEVICE_RANGE_H_
#define TENSORD_TESTS_HOSTCUDA_DEVICE_RANGE_H_

#include <cstddef>
#include <cstdint>

#include "tests/hostcuda/host_memory.h"

namespace tensord::cuda::host {

// The alignment of a library's workspace: that of cuMemAlloc, from which programs take it as a rule.
inline constexpr size_t kWorkspaceAlignment = 256;

// Returns the bytes behind a device pointer that a library was given; null if some of them are in no allocation, or the
// address is no multiple of `alignment`.
inline char* RevealRange(const void* pointer, size_t bytes, size_t alignment) {
  DeviceMemory& memory = DeviceMemory::Get();
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  char* const at = memory.Reveal(address);
  return address % alignment == 0 && memory.Has(at, bytes) ? at : nullptr;
}

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_DEVICE_RANGE_H_
