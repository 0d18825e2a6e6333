#include <cmath>
#include <complex>

#include "tests/unit/hostcuda/host_device.h"

namespace tensord::cuda {
namespace {

class HostSolverTest : public HostDeviceTest {
 protected:
  static constexpr int64_t kN = 12;
  static constexpr size_t kElements = kN * kN;

  void SetUp() override {
    HostDeviceTest::SetUp();
    ASSERT_EQ(cuda.cusolverDnCreate(&handle_), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnSetStream(handle_, a), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnSetDeterministicMode(handle_, kSolverDeterministic), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnCreateParams(&params_), kSolverSuccess);
    info_ = Device(4);
  }
  void TearDown() override {
    EXPECT_EQ(cuda.cusolverDnDestroyParams(params_), kSolverSuccess);
    EXPECT_EQ(cuda.cusolverDnDestroy(handle_), kSolverSuccess);
    HostDeviceTest::TearDown();
  }

  void* Pointer(CuAddress address) { return reinterpret_cast<void*>(address); }
  int* Info() { return reinterpret_cast<int*>(info_); }
  int ReadInfo() { return Read<int>(info_, 1).front(); }

  // Makes room for the workspaces that a function has asked for.
  void MakeWork() {
    work_ = Device(device_bytes_);
    host_work_.assign(host_bytes_, 0);
  }
  // By columns; symmetric, positive definite.
  static std::vector<double> Symmetric() {
    std::vector<double> matrix(kElements);
    for (int64_t j = 0; j < kN; ++j) {
      for (int64_t i = 0; i < kN; ++i) matrix[At(i, j)] = (i == j ? kN : 0) + std::cos(double(i * j));
    }
    return matrix;
  }
  static size_t At(int64_t i, int64_t j) { return static_cast<size_t>(i + j * kN); }

  SolverHandle handle_ = nullptr;
  SolverParams params_ = nullptr;
  CuAddress info_ = 0, work_ = 0;
  size_t device_bytes_ = 0, host_bytes_ = 0;
  std::vector<char> host_work_;
};

TEST_F(HostSolverTest, Cholesky) {
  std::vector<double> matrix = Symmetric();
  const CuAddress x = Device(kElements * 8);
  Write(x, matrix);
  ASSERT_EQ(cuda.cusolverDnXpotrf_bufferSize(handle_, params_, kBlasLower, kN, kCudaReal64, Pointer(x), kN, kCudaReal64,
                                             &device_bytes_, &host_bytes_),
            kSolverSuccess);
  MakeWork();
  const auto factor = [&](size_t device_bytes, int64_t lda, int type) {
    return cuda.cusolverDnXpotrf(handle_, params_, kBlasLower, kN, type, Pointer(x), lda, type, Pointer(work_),
                                 device_bytes, host_work_.data(), host_bytes_, Info());
  };
  EXPECT_EQ(factor(device_bytes_ - 1, kN, kCudaReal64), kSolverInvalidValue) << "less workspace than it wants";
  EXPECT_EQ(factor(device_bytes_, kN - 1, kCudaReal64), kSolverInvalidValue) << "a leading dimension below the rows";
  EXPECT_EQ(factor(device_bytes_, kN, kCudaReal16), kSolverInvalidValue) << "no such type";
  ASSERT_EQ(factor(device_bytes_, kN, kCudaReal64), kSolverSuccess);
  const std::vector<double> lower = Read<double>(x, kElements);
  EXPECT_EQ(ReadInfo(), 0);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = j; i < kN; ++i) {
      double sum = 0;
      for (int64_t l = 0; l <= j; ++l) sum += lower[At(i, l)] * lower[At(j, l)];
      EXPECT_NEAR(sum, matrix[At(i, j)], 1e-12);
    }
  }
  matrix[At(4, 4)] = -1;
  Write(x, matrix);
  ASSERT_EQ(factor(device_bytes_, kN, kCudaReal64), kSolverSuccess);
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuSuccess);
  EXPECT_EQ(ReadInfo(), 5) << "the first minor that is not positive";
}

TEST_F(HostSolverTest, LuSolves) {
  using Z = std::complex<double>;
  std::vector<Z> matrix(kElements), right(kN);
  for (size_t i = 0; i < kElements; ++i) matrix[i] = Z(std::sin(double(i * i)), std::cos(double(i)));
  for (size_t i = 0; i < kN; ++i) right[i] = Z(double(i), 1);
  const CuAddress x = Device(kElements * 16), b = Device(kN * 16), pivots = Device(kN * 8);
  Write(x, matrix);
  Write(b, right);
  ASSERT_EQ(cuda.cusolverDnXgetrf_bufferSize(handle_, params_, kN, kN, kCudaComplex64, Pointer(x), kN, kCudaComplex64,
                                             &device_bytes_, &host_bytes_),
            kSolverSuccess);
  MakeWork();
  auto* const to_pivots = reinterpret_cast<int64_t*>(pivots);
  ASSERT_EQ(cuda.cusolverDnXgetrf(handle_, params_, kN, kN, kCudaComplex64, Pointer(x), kN, to_pivots, kCudaComplex64,
                                  Pointer(work_), device_bytes_, host_work_.data(), host_bytes_, Info()),
            kSolverSuccess);
  ASSERT_EQ(cuda.cusolverDnXgetrs(handle_, params_, kBlasNoTranspose, kN, 1, kCudaComplex64, Pointer(x), kN, to_pivots,
                                  kCudaComplex64, Pointer(b), kN, Info()),
            kSolverSuccess);
  const std::vector<Z> solution = Read<Z>(b, kN);
  EXPECT_EQ(ReadInfo(), 0);
  for (int64_t i = 0; i < kN; ++i) {
    Z sum = 0;
    for (int64_t j = 0; j < kN; ++j) sum += matrix[At(i, j)] * solution[static_cast<size_t>(j)];
    EXPECT_LT(std::abs(sum - right[static_cast<size_t>(i)]), 1e-11);
  }
  for (int64_t pivot : Read<int64_t>(pivots, kN)) EXPECT_TRUE(pivot >= 1 && pivot <= kN) << "they count from 1";
}

TEST_F(HostSolverTest, QrKeepsColumnsLengths) {
  std::vector<float> matrix(kElements);
  for (size_t i = 0; i < kElements; ++i) matrix[i] = static_cast<float>(std::sin(double(i * i)));
  const CuAddress x = Device(kElements * 4), tau = Device(kN * 4);
  Write(x, matrix);
  ASSERT_EQ(cuda.cusolverDnXgeqrf_bufferSize(handle_, params_, kN, kN, kCudaReal32, Pointer(x), kN, kCudaReal32,
                                             Pointer(tau), kCudaReal32, &device_bytes_, &host_bytes_),
            kSolverSuccess);
  MakeWork();
  ASSERT_EQ(cuda.cusolverDnXgeqrf(handle_, params_, kN, kN, kCudaReal32, Pointer(x), kN, kCudaReal32, Pointer(tau),
                                  kCudaReal32, Pointer(work_), device_bytes_, host_work_.data(), host_bytes_, Info()),
            kSolverSuccess);
  const std::vector<float> upper = Read<float>(x, kElements);
  for (int64_t j = 0; j < kN; ++j) {
    double before = 0, after = 0;
    for (int64_t i = 0; i < kN; ++i) before += double(matrix[At(i, j)]) * matrix[At(i, j)];
    for (int64_t i = 0; i <= j; ++i) after += double(upper[At(i, j)]) * upper[At(i, j)];
    EXPECT_NEAR(before, after, 1e-4);
  }
}

TEST_F(HostSolverTest, EigenvaluesAddUpToTheTrace) {
  const std::vector<double> matrix = Symmetric();
  const CuAddress x = Device(kElements * 8), w = Device(kN * 8);
  Write(x, matrix);
  ASSERT_EQ(cuda.cusolverDnXsyevd_bufferSize(handle_, params_, kSolverVectors, kBlasLower, kN, kCudaReal64, Pointer(x),
                                             kN, kCudaReal64, Pointer(w), kCudaReal64, &device_bytes_, &host_bytes_),
            kSolverSuccess);
  MakeWork();
  ASSERT_EQ(cuda.cusolverDnXsyevd(handle_, params_, kSolverVectors, kBlasLower, kN, kCudaReal64, Pointer(x), kN,
                                  kCudaReal64, Pointer(w), kCudaReal64, Pointer(work_), device_bytes_,
                                  host_work_.data(), host_bytes_, Info()),
            kSolverSuccess);
  const std::vector<double> values = Read<double>(w, kN), vectors = Read<double>(x, kElements);
  EXPECT_EQ(ReadInfo(), 0);
  for (size_t v = 0; v < kN; ++v) {
    if (v > 0) {
      EXPECT_LE(values[v - 1], values[v]);
    }
    for (int64_t i = 0; i < kN; ++i) {
      double product = 0;
      for (int64_t j = 0; j < kN; ++j) product += matrix[At(i, j)] * vectors[At(j, static_cast<int64_t>(v))];
      EXPECT_NEAR(product, values[v] * vectors[At(i, static_cast<int64_t>(v))], 1e-11);
    }
  }
}

TEST_F(HostSolverTest, SingularValuesMakeTheMatrix) {
  constexpr int64_t kRows = 15;
  std::vector<double> matrix(kRows * kN);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(double(i * i));
  const CuAddress x = Device(matrix.size() * 8), s = Device(kN * 8), u = Device(matrix.size() * 8);
  const CuAddress vt = Device(kElements * 8);
  Write(x, matrix);
  const auto bytes_for = [&](int64_t rows) {
    return cuda.cusolverDnXgesvd_bufferSize(handle_, params_, 'S', 'S', rows, kN, kCudaReal64, Pointer(x), kRows,
                                            kCudaReal64, Pointer(s), kCudaReal64, Pointer(u), kRows, kCudaReal64,
                                            Pointer(vt), kN, kCudaReal64, &device_bytes_, &host_bytes_);
  };
  EXPECT_EQ(bytes_for(kN - 1), kSolverInvalidValue) << "fewer rows than columns";
  ASSERT_EQ(bytes_for(kRows), kSolverSuccess);
  MakeWork();
  ASSERT_EQ(cuda.cusolverDnXgesvd(handle_, params_, 'S', 'S', kRows, kN, kCudaReal64, Pointer(x), kRows, kCudaReal64,
                                  Pointer(s), kCudaReal64, Pointer(u), kRows, kCudaReal64, Pointer(vt), kN, kCudaReal64,
                                  Pointer(work_), device_bytes_, host_work_.data(), host_bytes_, Info()),
            kSolverSuccess);
  const std::vector<double> values = Read<double>(s, kN), left = Read<double>(u, matrix.size());
  const std::vector<double> right = Read<double>(vt, kElements);
  EXPECT_EQ(ReadInfo(), 0);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < kN; ++l) {
        sum += left[static_cast<size_t>(i + l * kRows)] * values[static_cast<size_t>(l)] * right[At(l, j)];
      }
      EXPECT_NEAR(sum, matrix[static_cast<size_t>(i + j * kRows)], 1e-12);
    }
  }
}

}  // namespace
}  // namespace tensord::cuda
