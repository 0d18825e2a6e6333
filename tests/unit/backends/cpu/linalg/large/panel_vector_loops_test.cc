#include "backends/cpu/linalg/large/panel_vector_loops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/linalg/lapack/number_parts.h"
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

template <typename T>
std::vector<T> RandomNumbers(int64_t count, std::mt19937& random) {
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) number = RandomNumber<T>(random);
  return numbers;
}

// Sums of as many terms.
template <typename T>
void ExpectNear(const std::vector<T>& actual, const std::vector<T>& expected, int64_t terms) {
  lapack::Real<T> worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) worst = std::max(worst, std::abs(actual[i] - expected[i]));
  EXPECT_LT(worst, 4 * static_cast<double>(terms + 4) * double{std::numeric_limits<lapack::Real<T>>::epsilon()});
}

// Columns begin to end of a matrix that begins `offset` numbers after an aligned place.
template <typename T>
void CheckHermitian(int64_t n, int64_t begin, int64_t end, int64_t offset, int64_t leading, std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, n " << n << ", columns " << begin << " to " << end
                                  << ", offset " << offset << ", leading " << leading);
  // Has exactly the elements that there are, so that a sanitizer sees reads beyond them. Elements outside of the
  // triangle are NaN.
  std::vector<T> a(static_cast<size_t>((n - 1) * leading + n), T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) a[static_cast<size_t>(j * leading + i)] = RandomNumber<T>(random);
  }
  const std::vector<T> x = RandomNumbers<T>(n, random);
  std::vector<T> y = RandomNumbers<T>(n, random), expected = y;
  for (int64_t j = begin; j < end; ++j) {
    const size_t column = static_cast<size_t>(j);
    expected[column] += std::real(a[static_cast<size_t>(j * leading + j)]) * x[column];
    for (int64_t i = j + 1; i < n; ++i) {
      const T entry = a[static_cast<size_t>(j * leading + i)];
      expected[static_cast<size_t>(i)] += entry * x[column];
      expected[column] += Conjugate(entry) * x[static_cast<size_t>(i)];
    }
  }
  GetReductionLoops<T>().add_hermitian(n, begin, end, a.data(), offset, leading, x.data(), y.data());
  ExpectNear(y, expected, n);
}

template <typename T>
void CheckProducts(int64_t m, int64_t k, int64_t offset, int64_t leading, std::mt19937& random) {
  SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, " << m << " x " << k << ", offset " << offset << ", leading "
                                  << leading);
  const std::vector<T> a = RandomNumbers<T>((k - 1) * leading + m, random);
  const std::vector<T> x = RandomNumbers<T>(k, random), other = RandomNumbers<T>(m, random);
  std::vector<T> y = RandomNumbers<T>(m, random), expected = y;
  std::vector<T> transposed(x.size(), T(std::numeric_limits<lapack::Real<T>>::quiet_NaN())), sums(x.size());
  for (int64_t j = 0; j < k; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const T entry = a[static_cast<size_t>(j * leading + i)];
      expected[static_cast<size_t>(i)] += entry * x[static_cast<size_t>(j)];
      sums[static_cast<size_t>(j)] += entry * other[static_cast<size_t>(i)];
    }
  }
  const ReductionLoops<T> loops = GetReductionLoops<T>();
  loops.add_product(m, k, a.data(), offset, leading, x.data(), y.data());
  ExpectNear(y, expected, k);
  loops.multiply_transposed(m, k, a.data(), offset, leading, other.data(), transposed.data());
  ExpectNear(transposed, sums, m);
}

template <typename T>
class ReductionLoopsTest : public testing::Test {};
using LoopNumbers = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(ReductionLoopsTest, LoopNumbers);

TYPED_TEST(ReductionLoopsTest, EqualNaiveLoops) {
  ForEachInstructionSet([](const char*) {
    std::mt19937 random(1);
    for (const int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 31, 33, 64, 77}) {
      for (const int64_t offset : {0, 1, 2, 3, 5, 7, 9, 15}) {
        // Columns at aligned places, and others.
        for (const int64_t leading : {(n + 15) / 16 * 16, n + 1}) {
          CheckHermitian<TypeParam>(n, 0, n, offset, leading, random);
          CheckHermitian<TypeParam>(n, n / 4, n - n / 3, offset, leading, random);
          CheckProducts<TypeParam>(n, offset + 1, offset, leading, random);
        }
      }
    }
    // Complex columns in pieces.
    for (const int64_t m : {1024, 1029}) CheckProducts<TypeParam>(m, 13, 3, 1040, random);
  });
}

}  // namespace
}  // namespace tensord::cpu
