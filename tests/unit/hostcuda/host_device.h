#ifndef TENSORD_TESTS_UNIT_HOSTCUDA_HOST_DEVICE_H_
#define TENSORD_TESTS_UNIT_HOSTCUDA_HOST_DEVICE_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "backends/cuda/abi/blas.h"
#include "backends/cuda/abi/blas_lt.h"
#include "backends/cuda/abi/driver.h"
#include "backends/cuda/abi/fft.h"
#include "backends/cuda/abi/nvrtc.h"
#include "backends/cuda/abi/solver.h"
#include "gtest/gtest.h"
#include "tests/hostcuda/host_control.h"

namespace tensord::cuda {

// The functions of the host CUDA device.
struct HostCuda {
#define TENSORD_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_NVRTC_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_BLAS_LT_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_BLAS_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_SOLVER_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_CUDA_FFT_FUNCTIONS(TENSORD_MEMBER)
  TENSORD_HOST_CUDA_CONTROLS(TENSORD_MEMBER)
#undef TENSORD_MEMBER

  static const HostCuda& Get() {
    static const HostCuda cuda = [] {
      HostCuda h;
      void* const library = dlopen(TENSORD_HOST_CUDA, RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) {
        ADD_FAILURE() << dlerror();
        return h;
      }
#define TENSORD_FIND(name, result, arguments)                         \
  h.name = reinterpret_cast<decltype(h.name)>(dlsym(library, #name)); \
  EXPECT_NE(h.name, nullptr) << #name;
      TENSORD_CUDA_DRIVER_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_NVRTC_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_BLAS_LT_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_BLAS_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_SOLVER_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_SOLVER_LATER_FUNCTIONS(TENSORD_FIND)
      TENSORD_CUDA_FFT_FUNCTIONS(TENSORD_FIND)
      TENSORD_HOST_CUDA_CONTROLS(TENSORD_FIND)
#undef TENSORD_FIND
      return h;
    }();
    return cuda;
  }
};

// A test on a context of its own, with two streams. Nothing of it may be left.
class HostDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuda.cuInit(0), kCuSuccess);
    Retain();
  }

  void TearDown() override {
    for (const char* setting : {"HOLD", "DELAY_US", "CHECK", "ORDER", "MEMORY"}) cuda.hostCudaSet(setting, "");
    EXPECT_EQ(cuda.cuDevicePrimaryCtxReset_v2(0), kCuSuccess);
    EXPECT_EQ(cuda.hostCudaLiveMemory(), 0);
    EXPECT_EQ(cuda.hostCudaLivePinned(), 0);
    EXPECT_EQ(cuda.hostCudaLiveHandles(), 0);
  }

  void Retain() {
    CuContext context = nullptr;
    ASSERT_EQ(cuda.cuDevicePrimaryCtxRetain(&context, 0), kCuSuccess);
    ASSERT_EQ(cuda.cuCtxSetCurrent(context), kCuSuccess);
    ASSERT_EQ(cuda.cuStreamCreate(&a, kCuStreamNonBlocking), kCuSuccess);
    ASSERT_EQ(cuda.cuStreamCreate(&b, kCuStreamNonBlocking), kCuSuccess);
  }

  // Returns an NVRTC result; the cubin and the log if they are asked for.
  NvrtcResult Compile(const std::string& source, std::vector<const char*> options, std::string* cubin,
                      std::string* log) {
    NvrtcProgram program = nullptr;
    EXPECT_EQ(cuda.nvrtcCreateProgram(&program, source.c_str(), "test.cu", 0, nullptr, nullptr), kNvrtcSuccess);
    const NvrtcResult result = cuda.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    size_t bytes = 0;
    if (log != nullptr) {
      EXPECT_EQ(cuda.nvrtcGetProgramLogSize(program, &bytes), kNvrtcSuccess);
      log->resize(bytes);
      EXPECT_EQ(cuda.nvrtcGetProgramLog(program, log->data()), kNvrtcSuccess);
      log->resize(bytes - 1);
    }
    if (result == kNvrtcSuccess && cubin != nullptr) {
      EXPECT_EQ(cuda.nvrtcGetCUBINSize(program, &bytes), kNvrtcSuccess);
      cubin->resize(bytes);
      if (bytes > 0) {
        EXPECT_EQ(cuda.nvrtcGetCUBIN(program, cubin->data()), kNvrtcSuccess);
      }
    }
    EXPECT_EQ(cuda.nvrtcDestroyProgram(&program), kNvrtcSuccess);
    EXPECT_EQ(program, nullptr);
    return result;
  }

  CuFunction Kernel(const std::string& source, const char* name) {
    std::string cubin, log;
    EXPECT_EQ(Compile(source, {"--std=c++17", "--fmad=false", "--gpu-architecture=sm_90"}, &cubin, &log), kNvrtcSuccess)
        << log;
    CuModule module = nullptr;
    CuFunction function = nullptr;
    EXPECT_EQ(cuda.cuModuleLoadData(&module, cubin.data()), kCuSuccess);
    EXPECT_EQ(cuda.cuModuleGetFunction(&function, module, name), kCuSuccess);
    return function;
  }

  CuAddress Device(size_t bytes) {
    CuAddress address = 0;
    EXPECT_EQ(cuda.cuMemAlloc_v2(&address, bytes), kCuSuccess);
    return address;
  }

  template <typename T>
  T* Pinned(size_t elements) {
    void* memory = nullptr;
    EXPECT_EQ(cuda.cuMemHostAlloc(&memory, elements * sizeof(T), 0), kCuSuccess);
    return static_cast<T*>(memory);
  }

  // Copies and waits.
  template <typename T>
  void Write(CuAddress to, const std::vector<T>& values) {
    T* const staging = Pinned<T>(values.size());
    std::memcpy(staging, values.data(), values.size() * sizeof(T));
    EXPECT_EQ(cuda.cuMemcpyHtoDAsync_v2(to, staging, values.size() * sizeof(T), a), kCuSuccess);
    EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
    EXPECT_EQ(cuda.cuMemFreeHost(staging), kCuSuccess);
  }
  template <typename T>
  std::vector<T> Read(CuAddress from, size_t elements) {
    T* const staging = Pinned<T>(elements);
    EXPECT_EQ(cuda.cuMemcpyDtoHAsync_v2(staging, from, elements * sizeof(T), a), kCuSuccess);
    EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
    std::vector<T> values(staging, staging + elements);
    EXPECT_EQ(cuda.cuMemFreeHost(staging), kCuSuccess);
    return values;
  }

  CuResult Launch(CuFunction function, CuStream stream, unsigned blocks, unsigned threads, std::vector<void*> arguments,
                  unsigned shared_bytes = 0) {
    return cuda.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, arguments.data(), nullptr);
  }

  const HostCuda& cuda = HostCuda::Get();
  CuStream a = nullptr, b = nullptr;
};

// y = k x.
inline constexpr char kScale[] =
    R"(extern "C" __global__ void scale(const double* x, double* y, long long n, double k) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < n; i += gridDim.x * 256ll) y[i] = x[i] * k;
})";

// Turns each 256 elements around.
inline constexpr char kReverse[] = R"(extern "C" __global__ void turn(double* x) {
  __shared__ double tile[256];
  tile[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  x[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
})";

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_UNIT_HOSTCUDA_HOST_DEVICE_H_
