#ifndef TENSORD_TESTS_UNIT_BACKENDS_CUDA_CUDA_TEST_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CUDA_CUDA_TEST_H_

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "backends/cuda/device/context.h"
#include "backends/cuda/libraries/libraries.h"
#include "gtest/gtest.h"
#include "tests/hostcuda/host_control.h"

namespace tensord::cuda {

inline constexpr int64_t kMiB = int64_t{1} << 20;

// A test on the host CUDA device, through the tables that the product uses. Nothing of it may be left on the device.
class CudaTest : public testing::Test {
 protected:
  CudaTest() {
    void* const library = dlopen(TENSORD_HOST_CUDA, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
#define TENSORD_FIND(name, result, arguments) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
    TENSORD_HOST_CUDA_CONTROLS(TENSORD_FIND)
#undef TENSORD_FIND
    const std::string folder = std::filesystem::path(TENSORD_HOST_CUDA).parent_path();
    auto opened = Libraries::Open(
        {.folders = {folder}, .asks_loader = false, .toolkit_folders = {}, .driver_release_file = "/dev/null"});
    EXPECT_TRUE(opened.ok()) << opened.status();
    libraries_ = *std::move(opened);
  }

  void TearDown() override {
    for (const char* setting :
         {"DELAY_US", "SEED", "WORK_US", "HOLD", "MEMORY", "VIRTUAL_MEMORY", "COMPUTE_CAPABILITY"}) {
      hostCudaSet(setting, "");
    }
    hostCudaFail("", 0, 0);
    EXPECT_EQ(hostCudaLiveMemory(), 0);
    EXPECT_EQ(hostCudaLivePinned(), 0);
    EXPECT_EQ(hostCudaLiveHandles(), 0);
    EXPECT_EQ(hostCudaOverruns(), 0);
    ResetDevice();
  }

  // Ends the context, with its error and all that is on the device.
  void ResetDevice() { EXPECT_EQ(libraries_->driver().cuDevicePrimaryCtxReset_v2(0), kCuSuccess); }

  // Returns a context that this thread has entered.
  std::shared_ptr<Context> Entered() {
    auto context = Context::Create(&libraries_->driver(), 0);
    EXPECT_TRUE(context.ok()) << context.status();
    EXPECT_TRUE((*context)->Enter().ok());
    return *std::move(context);
  }

  static std::string RandomBytes(size_t size, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
      const uint64_t word = random();
      std::memcpy(&bytes[i], &word, std::min(sizeof(word), size - i));
    }
    return bytes;
  }

  std::unique_ptr<Libraries> libraries_;
#define TENSORD_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
  TENSORD_HOST_CUDA_CONTROLS(TENSORD_MEMBER)
#undef TENSORD_MEMBER
};

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CUDA_CUDA_TEST_H_
