#include "backends/cpu/fft/lines_kernel.h"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/fft/transforms.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

using Complex = std::complex<double>;

// Four lines of four numbers out of a matrix of eight: those of the second half.
TEST(FftLinesKernelTest, TakesSomeLinesOutOfATensorIntoABoxAndBack) {
  constexpr int64_t kAll = 8, kLines = 4, kLength = 4, kFirst = 4;
  std::vector<Complex> tensor(kAll * kLength), box(kLines * kLength);
  for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = {static_cast<double>(i * i % 17), static_cast<double>(i % 5)};
  const std::vector<Complex> before = tensor;
  FftTransforms transforms;
  FftLines lines{.inner = kLines, .in_step = kAll, .in_length = kLength, .out_length = kLength};
  const std::unique_ptr<Kernel> forth = MakeFftLinesKernel(/*is_double=*/true, lines, transforms);
  lines.in_step = 0;
  lines.out_step = kAll;
  lines.forward = false;
  lines.scale = 0.25;
  const std::unique_ptr<Kernel> back = MakeFftLinesKernel(/*is_double=*/true, lines, transforms);
  EXPECT_EQ(forth->Describe(), "fft 4 in lanes, 4 lines");
  EXPECT_EQ(transforms.stats().tables, 1);

  alignas(64) char scratch[1 << 16];
  ASSERT_LE(forth->scratch_bytes(), static_cast<int64_t>(sizeof(scratch)));
  const void* const in = &tensor[kFirst];
  void* const middle = box.data();
  forth->Run({.operands = {&in, 1}, .results = {&middle, 1}, .scratch = scratch, .pool = nullptr});
  // Transforms of length 4 add, subtract and exchange: whole numbers stay whole.
  const Complex unit(0, 1);
  for (int64_t l = 0; l < kLines; ++l) {
    const auto x = [&](int64_t k) { return before[static_cast<size_t>(kFirst + l + k * kAll)]; };
    const auto y = [&](int64_t k) { return box[static_cast<size_t>(l + k * kLines)]; };
    EXPECT_EQ(y(0), x(0) + x(1) + x(2) + x(3));
    EXPECT_EQ(y(1), x(0) - unit * x(1) - x(2) + unit * x(3));
    EXPECT_EQ(y(2), x(0) - x(1) + x(2) - x(3));
    EXPECT_EQ(y(3), x(0) + unit * x(1) - x(2) - unit * x(3));
  }
  std::vector<Complex> written(tensor.size(), Complex(-1));
  const void* const from = box.data();
  void* const out = &written[kFirst];
  back->Run({.operands = {&from, 1}, .results = {&out, 1}, .scratch = scratch, .pool = nullptr});
  for (size_t i = 0; i < written.size(); ++i) EXPECT_EQ(written[i], i % kAll < kFirst ? Complex(-1) : before[i]) << i;
}

}  // namespace
}  // namespace tensord::cpu
