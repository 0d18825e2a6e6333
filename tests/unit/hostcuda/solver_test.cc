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
    objects_ = cuda.hostCudaLiveObjects();
    ASSERT_EQ(cuda.cusolverDnCreate(&handle_), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnSetStream(handle_, a), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnSetDeterministicMode(handle_, kSolverDeterministic), kSolverSuccess);
    ASSERT_EQ(cuda.cusolverDnCreateParams(&params_), kSolverSuccess);
    info_ = Device(4);
  }
  void TearDown() override {
    EXPECT_EQ(cuda.cusolverDnDestroyParams(params_), kSolverSuccess);
    EXPECT_EQ(cuda.cusolverDnDestroy(handle_), kSolverSuccess);
    EXPECT_EQ(cuda.hostCudaLiveObjects(), objects_);
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

  long objects_ = 0;  // that other tests have left
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

TEST_F(HostSolverTest, CholeskyOfABatch) {
  const std::vector<double> matrix = Symmetric();
  std::vector<double> both = matrix, broken = matrix;
  broken[At(4, 4)] = -1;
  both.insert(both.end(), broken.begin(), broken.end());
  const CuAddress x = Device(2 * kElements * 8), addresses = Device(2 * 8), infos = Device(2 * 4);
  Write(x, both);
  Write(addresses, std::vector<CuAddress>{x, x + kElements * 8});
  const auto factor = [&](int uplo, int n, int lda, CuAddress to_infos, int batch) {
    return cuda.cusolverDnDpotrfBatched(handle_, uplo, n, reinterpret_cast<void**>(addresses), lda,
                                        reinterpret_cast<int*>(to_infos), batch);
  };
  EXPECT_EQ(factor(kBlasLower, kN, kN - 1, infos, 2), kSolverInvalidValue) << "a leading dimension below the rows";
  EXPECT_EQ(factor(7, kN, kN, infos, 2), kSolverInvalidValue) << "no triangle";
  EXPECT_EQ(factor(kBlasLower, kN, kN, 0, 2), kSolverInvalidValue) << "no statuses";
  EXPECT_EQ(factor(kBlasLower, kN, kN, infos, 0), kSolverInvalidValue);
  EXPECT_EQ(factor(kBlasLower, kN, kN, infos, 3), kSolverInvalidValue) << "more matrices than addresses";
  ASSERT_EQ(factor(kBlasLower, kN, kN, infos, 2), kSolverSuccess);
  const std::vector<double> lower = Read<double>(x, kElements);
  EXPECT_EQ(Read<int>(infos, 2), (std::vector<int>{0, 5}));
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < j; ++i) EXPECT_NE(lower[At(i, j)], matrix[At(i, j)]) << "workspace";
    for (int64_t i = j; i < kN; ++i) {
      double sum = 0;
      for (int64_t l = 0; l <= j; ++l) sum += lower[At(i, l)] * lower[At(j, l)];
      EXPECT_NEAR(sum, matrix[At(i, j)], 1e-12);
    }
  }
  Write(addresses, std::vector<CuAddress>{x, 8});
  ASSERT_EQ(factor(kBlasUpper, kN, kN, infos, 2), kSolverSuccess) << "addresses are read later";
  EXPECT_EQ(cuda.cuStreamSynchronize(a), kCuIllegalAddress);
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

TEST_F(HostSolverTest, ReflectorsMakeAnOrthogonalMatrix) {
  constexpr int64_t kRows = 15;
  std::vector<double> matrix(kRows * kN);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(double(i * i));
  const CuAddress x = Device(matrix.size() * 8), tau = Device(kN * 8);
  Write(x, matrix);
  ASSERT_EQ(cuda.cusolverDnXgeqrf_bufferSize(handle_, params_, kRows, kN, kCudaReal64, Pointer(x), kRows, kCudaReal64,
                                             Pointer(tau), kCudaReal64, &device_bytes_, &host_bytes_),
            kSolverSuccess);
  MakeWork();
  ASSERT_EQ(
      cuda.cusolverDnXgeqrf(handle_, params_, kRows, kN, kCudaReal64, Pointer(x), kRows, kCudaReal64, Pointer(tau),
                            kCudaReal64, Pointer(work_), device_bytes_, host_work_.data(), host_bytes_, Info()),
      kSolverSuccess);
  int elements = 0;
  ASSERT_EQ(cuda.cusolverDnDorgqr_bufferSize(handle_, kRows, kN, kN, Pointer(x), kRows, Pointer(tau), &elements),
            kSolverSuccess);
  const CuAddress work = Device(static_cast<size_t>(elements) * 8);
  const auto make = [&](int work_elements, int k) {
    return cuda.cusolverDnDorgqr(handle_, kRows, kN, k, Pointer(x), kRows, Pointer(tau), Pointer(work), work_elements,
                                 Info());
  };
  EXPECT_EQ(make(elements - 1, kN), kSolverInvalidValue) << "less workspace than it wants";
  EXPECT_EQ(make(elements, kN + 1), kSolverInvalidValue) << "more reflectors than columns";
  ASSERT_EQ(make(elements, kN), kSolverSuccess);
  const std::vector<double> q = Read<double>(x, matrix.size());
  EXPECT_EQ(ReadInfo(), 0);
  for (size_t i = 0; i < kN; ++i) {
    for (size_t j = 0; j < kN; ++j) {
      double product = 0;
      for (size_t l = 0; l < kRows; ++l) product += q[l + i * kRows] * q[l + j * kRows];
      EXPECT_NEAR(product, i == j ? 1 : 0, 1e-14);
    }
  }
}

TEST_F(HostSolverTest, EigenvaluesOfABatch) {
  std::vector<double> matrices = Symmetric();
  const std::vector<double> first = matrices;
  for (double x : first) matrices.push_back(2 * x);
  const CuAddress x = Device(matrices.size() * 8), w = Device(2 * kN * 8), infos = Device(8);
  Write(x, matrices);
  ASSERT_EQ(cuda.cusolverDnXsyevBatched_bufferSize(handle_, params_, kSolverNoVectors, kBlasLower, kN, kCudaReal64,
                                                   Pointer(x), kN, kCudaReal64, Pointer(w), kCudaReal64, &device_bytes_,
                                                   &host_bytes_, 2),
            kSolverSuccess);
  MakeWork();
  ASSERT_EQ(cuda.cusolverDnXsyevBatched(handle_, params_, kSolverNoVectors, kBlasLower, kN, kCudaReal64, Pointer(x), kN,
                                        kCudaReal64, Pointer(w), kCudaReal64, Pointer(work_), device_bytes_,
                                        host_work_.data(), host_bytes_, reinterpret_cast<int*>(infos), 2),
            kSolverSuccess);
  const std::vector<double> values = Read<double>(w, 2 * kN);
  EXPECT_EQ(Read<int>(infos, 2), (std::vector<int>{0, 0}));
  for (size_t i = 0; i < kN; ++i) EXPECT_NEAR(2 * values[i], values[kN + i], 1e-11);
}

TEST_F(HostSolverTest, EigenvaluesOfARotation) {
  constexpr int64_t kTwo = 2;
  const CuAddress x = Device(32), w = Device(32), vr = Device(32);
  Write(x, std::vector<double>{0, 1, -1, 0});
  const auto bytes_for = [&](int left_mode) {
    return cuda.cusolverDnXgeev_bufferSize(handle_, params_, left_mode, kSolverVectors, kTwo, kCudaReal64, Pointer(x),
                                           kTwo, kCudaReal64, Pointer(w), kCudaReal64, nullptr, 1, kCudaReal64,
                                           Pointer(vr), kTwo, kCudaReal64, &device_bytes_, &host_bytes_);
  };
  EXPECT_EQ(bytes_for(kSolverVectors), kSolverInvalidValue) << "left vectors are not there";
  ASSERT_EQ(bytes_for(kSolverNoVectors), kSolverSuccess);
  MakeWork();
  ASSERT_EQ(cuda.cusolverDnXgeev(handle_, params_, kSolverNoVectors, kSolverVectors, kTwo, kCudaReal64, Pointer(x),
                                 kTwo, kCudaReal64, Pointer(w), kCudaReal64, nullptr, 1, kCudaReal64, Pointer(vr), kTwo,
                                 kCudaReal64, Pointer(work_), device_bytes_, host_work_.data(), host_bytes_, Info()),
            kSolverSuccess);
  const std::vector<double> values = Read<double>(w, 4), vectors = Read<double>(vr, 4);
  EXPECT_NEAR(values[0], 0, 1e-15);
  EXPECT_NEAR(values[2], 1, 1e-15) << "imaginary parts come after all real ones";
  EXPECT_NEAR(values[3], -1, 1e-15);
  // A v = i v, for v of the parts in the two columns.
  EXPECT_NEAR(vectors[0], -vectors[3], 1e-15);
  EXPECT_NEAR(vectors[1], vectors[2], 1e-15);
}

TEST_F(HostSolverTest, TriangularSystems) {
  BlasHandle blas = nullptr;
  ASSERT_EQ(cuda.cublasCreate_v2(&blas), kBlasSuccess);
  const CuAddress x = Device(32), b = Device(16), work = Device(1 << 16);
  Write(x, std::vector<double>{2, 1, -77, 4});
  Write(b, std::vector<double>{2, 9});
  const double one = 1;
  const auto solve = [&](int64_t lda) {
    return cuda.cublasDtrsm_v2_64(blas, kBlasLeft, kBlasLower, kBlasNoTranspose, kBlasNonUnit, 2, 1, &one, Pointer(x),
                                  lda, Pointer(b), 2);
  };
  EXPECT_EQ(solve(2), kBlasInvalidValue) << "no stream";
  ASSERT_EQ(cuda.cublasSetStream_v2(blas, a), kBlasSuccess);
  EXPECT_EQ(solve(2), kBlasNotSupported) << "a workspace of its own";
  ASSERT_EQ(cuda.cublasSetWorkspace_v2(blas, Pointer(work), 1 << 16), kBlasSuccess);
  EXPECT_EQ(solve(2), kBlasNotSupported) << "sums in any order";
  ASSERT_EQ(cuda.cublasSetAtomicsMode(blas, kBlasAtomicsNotAllowed), kBlasSuccess);
  ASSERT_EQ(cuda.cublasSetMathMode(blas, kBlasPedanticMath), kBlasSuccess);
  EXPECT_EQ(solve(1), kBlasInvalidValue) << "a leading dimension below the rows";
  ASSERT_EQ(solve(2), kBlasSuccess);
  EXPECT_EQ(Read<double>(b, 2), (std::vector<double>{1, 2}));
  EXPECT_EQ(cuda.cublasDestroy_v2(blas), kBlasSuccess);
}

}  // namespace
}  // namespace tensord::cuda
