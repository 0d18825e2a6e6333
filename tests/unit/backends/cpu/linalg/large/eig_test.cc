#include "backends/cpu/linalg/large/eig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "tests/unit/backends/cpu/pool_of.h"

namespace tensord::cpu {
namespace {

template <typename T>
class LargeEigTest : public testing::Test {
 protected:
  using R = lapack::Real<T>;
  using C = std::complex<R>;

  // Values, and vectors behind them.
  static std::vector<C> EigOf(const std::vector<T>& a, int64_t n) {
    const LargeEig<T> eig(n, /*has_vectors=*/true);
    std::vector<C> results(static_cast<size_t>(n + n * n));
    std::vector<char> scratch(static_cast<size_t>(eig.scratch_bytes() + 64));
    char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    EXPECT_EQ(eig.Run(a.data(), results.data(), results.data() + n, aligned, PoolOf(2)), 0);
    return results;
  }
};

using FieldDTypes = testing::Types<float, double, lapack::Complex64, lapack::Complex128>;
TYPED_TEST_SUITE(LargeEigTest, FieldDTypes);

// D·B·D⁻¹ of powers of two has B's eigenvalues, of whatever range D's numbers are.
TYPED_TEST(LargeEigTest, BadlyScaledMatricesHaveTheirEigenvalues) {
  using T = TypeParam;
  using R = typename TestFixture::R;
  constexpr int64_t n = 130;
  constexpr bool kIsSingle = std::is_same_v<R, float>;
  std::mt19937 random(3);
  std::normal_distribution<R> normal;
  std::vector<T> b(n * n);
  for (T& x : b) x = normal(random);
  const auto wanted = TestFixture::EigOf(b, n);
  R most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(wanted[i]));
  // Exponents of two that D's numbers have, from the smallest to the largest.
  for (const int range : kIsSingle ? std::vector<int>{20, 40, 64, 80} : std::vector<int>{300, 500, 700, 900}) {
    std::vector<int> exponents(n);
    for (int64_t i = 0; i < n; ++i) exponents[i] = static_cast<int>(i * range / (n - 1)) - range / 2;
    std::shuffle(exponents.begin(), exponents.end(), random);
    std::vector<T> a = b;
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) a[j * n + i] *= std::ldexp(R(1), exponents[i] - exponents[j]);
    }
    const auto values = TestFixture::EigOf(a, n);
    R apart = 0;
    for (int64_t i = 0; i < n; ++i) {
      R nearest = std::abs(values[i] - wanted[0]);
      for (int64_t k = 1; k < n; ++k) nearest = std::min(nearest, std::abs(values[i] - wanted[k]));
      apart = std::max(apart, nearest / most);
    }
    EXPECT_LT(apart, kIsSingle ? R(1e-4) : R(1e-11)) << range;
  }
}

TYPED_TEST(LargeEigTest, VectorsAreOfUnitLength) {
  using T = TypeParam;
  constexpr int64_t n = 300;
  constexpr double kMostOff = std::is_same_v<typename TestFixture::R, float> ? 2e-7 : 1e-13;
  const auto results = TestFixture::EigOf(std::vector<T>(n * n, T(1)), n);
  for (int64_t j = 0; j < n; ++j) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto x = results[n + j * n + i];
      squares += static_cast<double>(x.real()) * x.real() + static_cast<double>(x.imag()) * x.imag();
    }
    EXPECT_NEAR(std::sqrt(squares), 1, kMostOff) << j;
  }
}

}  // namespace
}  // namespace tensord::cpu
