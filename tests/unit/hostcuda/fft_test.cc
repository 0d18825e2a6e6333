#include <cmath>
#include <complex>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

using Z = std::complex<double>;

class HostFftTest : public HostDeviceTest {
 protected:
  void* Pointer(CuAddress address) { return reinterpret_cast<void*>(address); }

  FftPlan Plan(std::vector<long long> lengths, int type, long long batch, long long stride = 0,
               long long distance = 0) {
    FftPlan plan = 0;
    size_t work = 0;
    long long* const embed = stride == 0 ? nullptr : lengths.data();
    EXPECT_EQ(cuda.cufftCreate(&plan), kFftSuccess);
    EXPECT_EQ(cuda.cufftMakePlanMany64(plan, static_cast<int>(lengths.size()), lengths.data(), embed, stride, distance,
                                       embed, stride, distance, type, batch, &work),
              kFftSuccess);
    EXPECT_EQ(cuda.cufftSetStream(plan, a), kFftSuccess);
    return plan;
  }
  static std::vector<Z> Values(size_t n) {
    std::vector<Z> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = Z(std::sin(double(i)), std::cos(3.0 * double(i)));
    return values;
  }
};

TEST_F(HostFftTest, LinesAcrossMemory) {
  for (const size_t n : {60u, 13u, 1u}) {
    constexpr size_t kBatch = 5;
    const std::vector<Z> in = Values(n * kBatch);
    const CuAddress x = Device(in.size() * 16), y = Device(in.size() * 16);
    Write(x, in);
    const FftPlan plan = Plan({static_cast<long long>(n)}, kFftZ2Z, kBatch, kBatch, 1);
    ASSERT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(y), kFftForward), kFftSuccess);
    const std::vector<Z> out = Read<Z>(y, in.size());
    double worst = 0;
    for (size_t b = 0; b < kBatch; ++b) {
      for (size_t k = 0; k < n; ++k) {
        Z want = 0;
        for (size_t j = 0; j < n; ++j) {
          want += in[b + j * kBatch] * std::polar(1.0, -2 * M_PI * double(j * k % n) / double(n));
        }
        worst = std::max(worst, std::abs(want - out[b + k * kBatch]));
      }
    }
    EXPECT_LT(worst, 1e-12) << n;
    EXPECT_EQ(cuda.cufftDestroy(plan), kFftSuccess);
  }
}

TEST_F(HostFftTest, RealTransformsAreHalves) {
  const size_t rows = 4, columns = 6, half = columns / 2 + 1;
  std::vector<double> in(rows * columns);
  std::vector<Z> wide(in.size());
  for (size_t i = 0; i < in.size(); ++i) wide[i] = in[i] = std::sin(double(i * i));
  const CuAddress x = Device(in.size() * 8), y = Device(rows * half * 16), z = Device(in.size() * 16);
  Write(x, in);
  Write(z, wide);
  const FftPlan forward = Plan({rows, columns}, kFftD2Z, 1), back = Plan({rows, columns}, kFftZ2D, 1);
  const FftPlan whole = Plan({rows, columns}, kFftZ2Z, 1);
  ASSERT_EQ(cuda.cufftXtExec(forward, Pointer(x), Pointer(y), kFftForward), kFftSuccess);
  ASSERT_EQ(cuda.cufftXtExec(whole, Pointer(z), Pointer(z), kFftForward), kFftSuccess);
  const std::vector<Z> spectrum = Read<Z>(y, rows * half), want = Read<Z>(z, in.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < half; ++c) EXPECT_LT(std::abs(spectrum[r * half + c] - want[r * columns + c]), 1e-12);
  }
  ASSERT_EQ(cuda.cufftXtExec(back, Pointer(y), Pointer(x), kFftForward), kFftSuccess);
  const std::vector<double> got = Read<double>(x, in.size());
  for (size_t i = 0; i < in.size(); ++i) EXPECT_NEAR(got[i], 24 * in[i], 1e-12);
  EXPECT_NE(Read<Z>(y, 1).front(), spectrum.front()) << "the input is lost";
}

TEST_F(HostFftTest, SinglePrecision) {
  const CuAddress x = Device(64);
  Write<std::complex<float>>(x, {1, 2, 3, 4, 0, 0, 0, 0});
  const FftPlan plan = Plan({8}, kFftC2C, 1);
  ASSERT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftForward), kFftSuccess);
  ASSERT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftInverse), kFftSuccess);
  EXPECT_NEAR(Read<std::complex<float>>(x, 8)[3].real(), 32, 1e-5);
}

TEST_F(HostFftTest, RefusesWrongArguments) {
  const CuAddress x = Device(8 * 16), work = Device(1024);
  FftPlan plan = 0;
  size_t bytes = 0;
  long long n = 8, none = 0;
  ASSERT_EQ(cuda.cufftCreate(&plan), kFftSuccess);
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftForward), kFftInvalidPlan) << "not made";
  const auto make = [&](int rank, long long* lengths, int type, long long batch) {
    return cuda.cufftMakePlanMany64(plan, rank, lengths, nullptr, 1, 0, nullptr, 1, 0, type, batch, &bytes);
  };
  EXPECT_EQ(make(4, &n, kFftZ2Z, 1), kFftInvalidValue);
  EXPECT_EQ(make(1, &none, kFftZ2Z, 1), kFftInvalidSize);
  EXPECT_EQ(make(1, &n, 7, 1), kFftInvalidValue);
  ASSERT_EQ(cuda.cufftSetAutoAllocation(plan, 0), kFftSuccess);
  ASSERT_EQ(make(1, &n, kFftZ2Z, 1), kFftSuccess);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftForward), kFftInvalidValue) << "no stream";
  ASSERT_EQ(cuda.cufftSetStream(plan, a), kFftSuccess);
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftForward), kFftInvalidValue) << "no work area";
  ASSERT_EQ(cuda.cufftSetWorkArea(plan, Pointer(work)), kFftSuccess);
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), 5), kFftInvalidValue) << "no direction";
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x + 16), Pointer(x), kFftForward), kFftInvalidValue) << "past the end";
  EXPECT_EQ(cuda.cufftXtExec(plan, Pointer(x), Pointer(x), kFftForward), kFftSuccess);
  EXPECT_EQ(cuda.cufftDestroy(plan), kFftSuccess);
  EXPECT_EQ(cuda.cufftDestroy(plan), kFftInvalidPlan);
}

}  // namespace
}  // namespace tensord::cuda
