#ifndef TENSORD_TESTS_CONFORMANCE_CUDA_UNDER_TEST_H_
#define TENSORD_TESTS_CONFORMANCE_CUDA_UNDER_TEST_H_

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/libraries/libraries.h"

namespace tensord {

// Returns the places of NVIDIA's libraries: those of the device that the host plays, or of the machine's GPU where the
// environment variable TENSORD_CUDA_LIBRARIES names a folder, as the setting cuda.libraries does, or "usual".
inline cuda::LibraryPaths CudaPathsUnderTest() {
  const char* const chosen = std::getenv("TENSORD_CUDA_LIBRARIES");
  if (chosen != nullptr) return cuda::PathsOf(absl::string_view(chosen) == "usual" ? "" : chosen);
  return {.folders = {TENSORD_HOST_CUDA_FOLDER},
          .asks_loader = false,
          .toolkit_folders = {},
          .driver_release_file = "/dev/null"};
}

// Tells whether the host plays the device.
inline bool HostPlaysCuda() { return std::getenv("TENSORD_CUDA_LIBRARIES") == nullptr; }

// Returns a backend on it. The libraries are never closed, and kernels are kept from one backend to the next.
inline std::unique_ptr<Backend> MakeCudaUnderTest() {
  static cuda::Libraries* const libraries = cuda::Libraries::Open(CudaPathsUnderTest())->release();
  static const std::shared_ptr<cuda::CubinStore> cubins = *cuda::CubinStore::Open({.memory_bytes = int64_t{1} << 30});
  return *MakeCudaBackend({.libraries = libraries,
                           .tensor_bytes = int64_t{1} << 30,
                           .host_memory = HostBufferPool::Create(int64_t{1} << 30, 0),
                           .cubins = cubins});
}

// Sets what the device that the host plays does from now on (tests/hostcuda/README.md); nothing on a GPU.
inline void SetHostCuda(const char* name, const std::string& value) {
  static const auto set = [] {
    void* const library =
        HostPlaysCuda() ? dlopen(TENSORD_HOST_CUDA_FOLDER "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : nullptr;
    return library == nullptr ? nullptr
                              : reinterpret_cast<void (*)(const char*, const char*)>(dlsym(library, "hostCudaSet"));
  }();
  if (set != nullptr) set(name, value.c_str());
}

// Kernels that are compiled while this lives are made many at a time, when the first of them is launched.
class KernelsTogether {
 public:
  KernelsTogether() { SetHostCuda("TOGETHER", "1"); }
  KernelsTogether(const KernelsTogether&) = delete;
  KernelsTogether& operator=(const KernelsTogether&) = delete;
  ~KernelsTogether() { SetHostCuda("TOGETHER", "0"); }
};

}  // namespace tensord

#endif  // TENSORD_TESTS_CONFORMANCE_CUDA_UNDER_TEST_H_
