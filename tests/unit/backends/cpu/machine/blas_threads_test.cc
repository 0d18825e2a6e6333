#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <vector>

#include "backends/cpu/machine/blas.h"
#include "backends/cpu/matmul/blas_products.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

int ThreadsOfThisProcess() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<int>(std::distance(Iterator("/proc/self/task"), Iterator()));
}

// Ends the process with the number of its threads after a product for which OpenBLAS would use all that it may.
[[noreturn]] void MultiplyAndCountThreads() {
  UseSerialBlas();
  UseSerialBlas();
  constexpr int64_t kSize = 512;
  const std::vector<float> a(kSize * kSize, 1);
  std::vector<float> c(kSize * kSize);
  const MatrixStrides strides{.row_stride = 1, .column_stride = kSize};
  BlasMatrixMatrix(DType::kF32,
                   {.m = kSize, .n = kSize, .k = kSize, .a = strides, .b = strides, .c_column_stride = kSize}, a.data(),
                   a.data(), c.data());
  std::_Exit(c[7] == kSize ? ThreadsOfThisProcess() : 0);
}

// In a process of its own: other tests have threads.
TEST(BlasThreadsDeathTest, ThereAreNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(MultiplyAndCountThreads(), ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace tensord::cpu
