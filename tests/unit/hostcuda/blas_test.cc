#include <cmath>
#include <complex>
#include <memory>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

template <typename T>
constexpr int kTypeOf = -1;
template <>
constexpr int kTypeOf<float> = kCudaReal32;
template <>
constexpr int kTypeOf<double> = kCudaReal64;
template <>
constexpr int kTypeOf<std::complex<double>> = kCudaComplex64;

class HostBlasTest : public HostDeviceTest {
 protected:
  void SetUp() override {
    HostDeviceTest::SetUp();
    ASSERT_EQ(cuda.cublasLtCreate(&handle_), kBlasSuccess);
    ASSERT_EQ(cuda.cublasLtMatmulPreferenceCreate(&preference_), kBlasSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cuda.cublasLtMatmulPreferenceDestroy(preference_), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtDestroy(handle_), kBlasSuccess);
    HostDeviceTest::TearDown();
  }

  BlasLtMatmulDesc Desc(int compute, int scale, int32_t transpose_a, int32_t transpose_b) {
    BlasLtMatmulDesc desc = nullptr;
    EXPECT_EQ(cuda.cublasLtMatmulDescCreate(&desc, compute, scale), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtMatmulDescSetAttribute(desc, kBlasLtDescTransposeA, &transpose_a, 4), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtMatmulDescSetAttribute(desc, kBlasLtDescTransposeB, &transpose_b, 4), kBlasSuccess);
    return desc;
  }
  BlasLtMatrixLayout Layout(int type, uint64_t rows, uint64_t columns, int64_t leading, int32_t batch, int64_t stride) {
    BlasLtMatrixLayout layout = nullptr;
    EXPECT_EQ(cuda.cublasLtMatrixLayoutCreate(&layout, type, rows, columns, leading), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtMatrixLayoutSetAttribute(layout, kBlasLtLayoutBatch, &batch, 4), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtMatrixLayoutSetAttribute(layout, kBlasLtLayoutBatchStride, &stride, 8), kBlasSuccess);
    return layout;
  }
  void* Pointer(CuAddress address) { return reinterpret_cast<void*>(address); }

  // The product of one shape: A is 17 × 23 (transposed in memory), B is 23 × 9, in batches of 4.
  template <typename T>
  void ExpectProduct(int compute, int32_t transpose_a) {
    constexpr size_t kM = 17, kN = 9, kK = 23, kBatch = 4;
    std::vector<T> x(kM * kK * kBatch), y(kK * kN * kBatch), z(kM * kN * kBatch, T(1));
    for (size_t i = 0; i < x.size(); ++i) x[i] = Value<T>(i);
    for (size_t i = 0; i < y.size(); ++i) y[i] = Value<T>(3 * i + 1);
    const CuAddress a_data = Device(x.size() * sizeof(T)), b_data = Device(y.size() * sizeof(T));
    const CuAddress d_data = Device(z.size() * sizeof(T)), work = Device(4096);
    Write(a_data, x);
    Write(b_data, y);
    Write(d_data, z);
    const int type = kTypeOf<T>;
    const BlasLtMatmulDesc desc = Desc(compute, type, transpose_a, kBlasNoTranspose);
    const BlasLtMatrixLayout a_layout = Layout(type, kK, kM, kK, kBatch, kM * kK);
    const BlasLtMatrixLayout b_layout = Layout(type, kK, kN, kK, kBatch, kK * kN);
    const BlasLtMatrixLayout d_layout = Layout(type, kM, kN, kM, kBatch, kM * kN);
    uint64_t workspace = 4096;
    ASSERT_EQ(cuda.cublasLtMatmulPreferenceSetAttribute(preference_, kBlasLtPreferMaxWorkspaceBytes, &workspace, 8), 0);
    for (int which = kBlasLtPreferAlignmentA; which <= kBlasLtPreferAlignmentD; ++which) {
      const uint32_t alignment = 16;
      ASSERT_EQ(cuda.cublasLtMatmulPreferenceSetAttribute(preference_, which, &alignment, 4), kBlasSuccess);
    }
    BlasLtHeuristic chosen = {};
    int found = 0;
    ASSERT_EQ(cuda.cublasLtMatmulAlgoGetHeuristic(handle_, desc, a_layout, b_layout, d_layout, d_layout, preference_, 1,
                                                  &chosen, &found),
              kBlasSuccess);
    ASSERT_EQ(found, 1);
    EXPECT_EQ(chosen.workspace_bytes, 4096u);
    T alpha = T(2), beta = T(-1);
    ASSERT_EQ(cuda.cublasLtMatmul(handle_, desc, &alpha, Pointer(a_data), a_layout, Pointer(b_data), b_layout, &beta,
                                  Pointer(d_data), d_layout, Pointer(d_data), d_layout, &chosen.algorithm,
                                  Pointer(work), 4096, a),
              kBlasSuccess);
    alpha = beta = T(1000);  // read already
    const std::vector<T> got = Read<T>(d_data, z.size());
    double worst = 0;
    for (size_t q = 0; q < kBatch; ++q) {
      for (size_t j = 0; j < kN; ++j) {
        for (size_t i = 0; i < kM; ++i) {
          T want = T(-1);
          for (size_t l = 0; l < kK; ++l) {
            T from = x[q * kM * kK + l + i * kK];
            if constexpr (requires { from.imag(); }) {
              if (transpose_a == kBlasConjugateTranspose) from = std::conj(from);
            }
            want += T(2) * from * y[q * kK * kN + l + j * kK];
          }
          worst = std::max<double>(worst, std::abs(want - got[q * kM * kN + i + j * kM]));
        }
      }
    }
    EXPECT_LT(worst, sizeof(T) == 4 ? 1e-4 : 1e-12);
    for (BlasLtMatrixLayout layout : {a_layout, b_layout, d_layout}) {
      EXPECT_EQ(cuda.cublasLtMatrixLayoutDestroy(layout), kBlasSuccess);
    }
    EXPECT_EQ(cuda.cublasLtMatmulDescDestroy(desc), kBlasSuccess);
  }

  // D = A B + bias of 8 × 8 ones, with what it is refused for.
  void ExpectBias(int compute, int type, BlasResult chosen_with) {
    const CuAddress data = Device(64 * 8), result = Device(64 * 8), bias = Device(17 * 4), work = Device(4096);
    Write(data, std::vector<float>(64, 1));
    std::vector<float> numbers(17);
    for (size_t i = 0; i < 17; ++i) numbers[i] = static_cast<float>(i) / 3;
    Write(bias, numbers);
    const BlasLtMatmulDesc desc = Desc(compute, type, kBlasNoTranspose, kBlasNoTranspose);
    const BlasLtMatrixLayout layout = Layout(type, 8, 8, 8, 1, 0);
    const auto set = [&](int attribute, auto value) {
      EXPECT_EQ(cuda.cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof(value)), kBlasSuccess);
    };
    set(kBlasLtDescBiasPointer, Pointer(16));
    BlasLtHeuristic chosen = {}, plain = {};
    int found = 0;
    const auto choose = [&](BlasLtHeuristic* heuristic) {
      return cuda.cublasLtMatmulAlgoGetHeuristic(handle_, desc, layout, layout, layout, layout, preference_, 1,
                                                 heuristic, &found);
    };
    EXPECT_EQ(choose(&plain), kBlasSuccess);
    set(kBlasLtDescEpilogue, uint32_t{2});
    EXPECT_EQ(choose(&chosen), kBlasNotSupported) << "ReLU";
    set(kBlasLtDescEpilogue, uint32_t{kBlasLtEpilogueBias});
    EXPECT_EQ(choose(&chosen), chosen_with);
    if (chosen_with == kBlasSuccess) {
      const float one = 1, zero = 0;
      const auto multiply = [&](const BlasLtHeuristic& heuristic) {
        return cuda.cublasLtMatmul(handle_, desc, &one, Pointer(data), layout, Pointer(data), layout, &zero,
                                   Pointer(result), layout, Pointer(result), layout, &heuristic.algorithm,
                                   Pointer(work), 4096, a);
      };
      EXPECT_EQ(multiply(chosen), kBlasInvalidValue) << "no memory of the device";
      set(kBlasLtDescBiasPointer, Pointer(bias + 4));
      EXPECT_EQ(multiply(chosen), kBlasInvalidValue) << "less aligned than it was shown";
      set(kBlasLtDescBiasPointer, Pointer(bias + 48));
      EXPECT_EQ(multiply(chosen), kBlasInvalidValue) << "5 numbers of 8";
      set(kBlasLtDescBiasPointer, Pointer(bias + 16));
      EXPECT_EQ(multiply(plain), kBlasInvalidValue) << "an algorithm without one";
      EXPECT_EQ(multiply(chosen), kBlasSuccess);
      const std::vector<float> got = Read<float>(result, 64);
      for (size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 8 + numbers[4 + i % 8]);
    }
    EXPECT_EQ(cuda.cublasLtMatrixLayoutDestroy(layout), kBlasSuccess);
    EXPECT_EQ(cuda.cublasLtMatmulDescDestroy(desc), kBlasSuccess);
  }

  template <typename T>
  static T Value(size_t i) {
    if constexpr (requires { T().imag(); }) {
      return T(std::sin(static_cast<double>(i)), std::cos(static_cast<double>(i)));
    } else {
      return static_cast<T>(std::sin(static_cast<double>(i)));
    }
  }

  BlasLtHandle handle_ = nullptr;
  BlasLtPreference preference_ = nullptr;
};

TEST_F(HostBlasTest, Multiplies) {
  ExpectProduct<float>(kBlasCompute32, kBlasTranspose);
  ExpectProduct<double>(kBlasCompute64, kBlasTranspose);
  ExpectProduct<std::complex<double>>(kBlasCompute64, kBlasConjugateTranspose);
  ExpectProduct<std::complex<double>>(kBlasCompute64, kBlasTranspose);
}

TEST_F(HostBlasTest, HalvesBecomeFloatsOrHalves) {
  const CuAddress x = Device(256), y = Device(256), z = Device(256);
  Write<uint16_t>(x, {0x3c00, 0x4000});  // 1, 2 in F16
  Write<uint16_t>(y, {0x4200, 0x4400});  // 3, 4
  const float one = 1, zero = 0;
  const BlasLtMatmulDesc desc = Desc(kBlasCompute32, kCudaReal32, kBlasNoTranspose, kBlasNoTranspose);
  const BlasLtMatrixLayout row = Layout(kCudaReal16, 1, 2, 1, 1, 0), column = Layout(kCudaReal16, 2, 1, 2, 1, 0);
  for (int type : {kCudaReal16, kCudaReal32}) {
    const BlasLtMatrixLayout to = Layout(type, 1, 1, 1, 1, 0);
    BlasLtHeuristic chosen = {};
    int found = 0;
    ASSERT_EQ(cuda.cublasLtMatmulAlgoGetHeuristic(handle_, desc, row, column, to, to, preference_, 1, &chosen, &found),
              0);
    ASSERT_EQ(cuda.cublasLtMatmul(handle_, desc, &one, Pointer(x), row, Pointer(y), column, &zero, Pointer(z), to,
                                  Pointer(z), to, &chosen.algorithm, nullptr, 0, a),
              kBlasSuccess);
    if (type == kCudaReal16) {
      EXPECT_EQ(Read<uint16_t>(z, 1).front(), 0x4980);  // 11
    } else {
      EXPECT_EQ(Read<float>(z, 1).front(), 11);
    }
    EXPECT_EQ(cuda.cublasLtMatrixLayoutDestroy(to), kBlasSuccess);
  }
}

TEST_F(HostBlasTest, AddsABias) {
  ExpectBias(kBlasCompute32, kCudaReal32, kBlasSuccess);
  ExpectBias(kBlasCompute64, kCudaReal64, kBlasNotSupported);
  ExpectBias(kBlasCompute32, kCudaComplex32, kBlasNotSupported);
}

TEST_F(HostBlasTest, RefusesWrongArguments) {
  const CuAddress x = Device(4096), work = Device(4096);
  const BlasLtMatmulDesc desc = Desc(kBlasCompute64, kCudaReal64, kBlasNoTranspose, kBlasNoTranspose);
  const BlasLtMatrixLayout square = Layout(kCudaReal64, 8, 8, 8, 1, 0), small = Layout(kCudaReal64, 7, 8, 8, 1, 0);
  const BlasLtMatrixLayout narrow = Layout(kCudaReal64, 8, 8, 7, 1, 0), single = Layout(kCudaReal32, 8, 8, 8, 1, 0);
  BlasLtHeuristic chosen = {};
  int found = 0;
  const auto choose = [&](BlasLtMatrixLayout b) {
    return cuda.cublasLtMatmulAlgoGetHeuristic(handle_, desc, square, b, square, square, preference_, 1, &chosen,
                                               &found);
  };
  EXPECT_EQ(choose(small), kBlasInvalidValue) << "other rows than A's columns";
  EXPECT_EQ(choose(narrow), kBlasInvalidValue) << "a leading dimension below the rows";
  EXPECT_EQ(choose(single), kBlasNotSupported) << "two types";
  uint64_t workspace = 4096;
  cuda.cublasLtMatmulPreferenceSetAttribute(preference_, kBlasLtPreferMaxWorkspaceBytes, &workspace, 8);
  ASSERT_EQ(choose(square), kBlasSuccess);
  const double one = 1, zero = 0;
  const auto multiply = [&](CuAddress from, CuAddress to, size_t bytes, CuStream stream) {
    return cuda.cublasLtMatmul(handle_, desc, &one, Pointer(from), square, Pointer(x), square, &zero, Pointer(to),
                               square, Pointer(to), square, &chosen.algorithm, Pointer(work), bytes, stream);
  };
  const CuAddress to = x + 2048;
  EXPECT_EQ(multiply(x, to, 4096, a), kBlasSuccess);
  EXPECT_EQ(multiply(x, to, 4095, a), kBlasInvalidValue) << "less workspace than the algorithm wants";
  EXPECT_EQ(multiply(x + 8, to, 4096, a), kBlasInvalidValue) << "aligned less than the preference says";
  EXPECT_EQ(multiply(x, to + 2048, 4096, a), kBlasInvalidValue) << "past the allocation";
  EXPECT_EQ(multiply(x, to, 4096, nullptr), kBlasInvalidValue) << "no stream";
  chosen.algorithm.data[0] = 1;
  EXPECT_EQ(multiply(x, to, 4096, a), kBlasInvalidValue) << "no algorithm of ours";
  EXPECT_EQ(cuda.cublasLtMatmulDescSetAttribute(desc, kBlasLtDescTransposeA, &one, 8), kBlasInvalidValue);
}

}  // namespace
}  // namespace tensord::cuda
