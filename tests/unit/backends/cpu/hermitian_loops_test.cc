#include "backends/cpu/hermitian_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/number_parts.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

template <typename T>
T RandomNumber(std::mt19937& random) {
  std::uniform_real_distribution<lapack::Real<T>> uniform(-1, 1);
  if constexpr (lapack::kIsComplex<T>) {
    const auto real = uniform(random);
    return T(real, uniform(random));
  } else {
    return uniform(random);
  }
}

// Columns begin to end of a matrix that begins `offset` numbers after an aligned place.
template <typename T>
void Check(int64_t n, int64_t begin, int64_t end, int64_t offset, int64_t leading, std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, n " << n << ", columns " << begin << " to " << end
                                  << ", offset " << offset << ", leading " << leading);
  using R = lapack::Real<T>;
  const size_t size = static_cast<size_t>(n);
  // Of exactly the elements that there are, so that a sanitizer sees what is read beyond them. What is not of the
  // triangle is not a number.
  std::vector<T> a(static_cast<size_t>((n - 1) * leading + n), T(std::numeric_limits<R>::quiet_NaN()));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) a[static_cast<size_t>(j * leading + i)] = RandomNumber<T>(random);
  }
  std::vector<T> x(size), y(size), expected(size);
  for (T& number : x) number = RandomNumber<T>(random);
  for (T& number : y) number = RandomNumber<T>(random);
  expected = y;
  for (int64_t j = begin; j < end; ++j) {
    const size_t column = static_cast<size_t>(j);
    expected[column] += std::real(a[static_cast<size_t>(j * leading + j)]) * x[column];
    for (int64_t i = j + 1; i < n; ++i) {
      const T entry = a[static_cast<size_t>(j * leading + i)];
      expected[static_cast<size_t>(i)] += entry * x[column];
      expected[column] += Conjugate(entry) * x[static_cast<size_t>(i)];
    }
  }
  GetHermitianLoops<T>().add_hermitian(n, begin, end, a.data(), offset, leading, x.data(), y.data());
  R worst = 0;
  for (size_t i = 0; i < size; ++i) worst = std::max(worst, std::abs(y[i] - expected[i]));
  EXPECT_LT(worst, 4 * static_cast<R>(n + 4) * std::numeric_limits<R>::epsilon());
}

template <typename T>
class HermitianLoopsTest : public testing::Test {};
using Numbers = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(HermitianLoopsTest, Numbers);

TYPED_TEST(HermitianLoopsTest, EqualNaiveLoops) {
  ForEachInstructionSet([](const char*) {
    std::mt19937 random(1);
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 31, 33, 64, 77}) {
      for (const int64_t offset : {0, 1, 2, 3, 5, 7, 9, 15}) {
        // Columns at aligned places, and others.
        for (const int64_t leading : {(n + 15) / 16 * 16, n + 1}) {
          Check<TypeParam>(n, 0, n, offset, leading, random);
          Check<TypeParam>(n, n / 4, n - n / 3, offset, leading, random);
        }
      }
    }
  });
}

}  // namespace
}  // namespace tensord::cpu
