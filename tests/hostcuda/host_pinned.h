#ifndef TENSORD_TESTS_HOSTCUDA_HOST_PINNED_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_PINNED_H_

#include <cstddef>
#include <map>
#include <mutex>

#include "backends/cuda/abi/driver.h"
#include "tests/hostcuda/host_context.h"

namespace tensord::cuda::host {

// Memory of the host that asynchronous copies may read and write: cuMemHostAlloc and cuMemHostRegister. Thread-safe.
class PinnedMemory {
 public:
  static PinnedMemory& Get();

  CuResult Allocate(size_t bytes, void** memory);
  CuResult Free(void* memory);
  CuResult Register(void* memory, size_t bytes, unsigned flags);
  CuResult Unregister(void* memory);
  // Frees what was allocated in a context, and forgets what was registered in it.
  void Clear(const Context& context);

  // True if all of the bytes lie in one allocation, or registration that the calling thread's context may use.
  bool Has(const void* memory, size_t bytes);
  long live();

 private:
  struct Range {
    size_t bytes;
    bool is_ours;
    bool is_portable;
    const Context* context;
  };
  std::mutex mutex_;
  std::map<const char*, Range> ranges_;
};

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_PINNED_H_
