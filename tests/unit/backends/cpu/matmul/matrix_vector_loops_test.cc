#include "backends/cpu/matmul/matrix_vector_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tensord::cpu {
namespace {

// y = A·x in order, and what an element may be off.
template <typename T>
void Check(int64_t outputs, int64_t k, int64_t gap, bool by_columns, bool accumulates, std::mt19937& random) {
  const MatrixVectorLoops loops = GetMatrixVectorLoops(kDTypeOf<T>);
  const MatrixVectorFunction multiply = by_columns ? loops.by_columns : loops.by_rows;
  if (multiply == nullptr || (by_columns && outputs > loops.max_outputs)) return;
  const int64_t dense = by_columns ? outputs : k;
  const int64_t others = by_columns ? k : outputs;
  const int64_t step = dense + gap;
  // Has exactly the elements that there are, so that a sanitizer sees reads beyond them.
  std::vector<T> a(static_cast<size_t>(std::max<int64_t>(0, (others - 1) * step + dense)));
  std::vector<T> x(static_cast<size_t>(k)), y(static_cast<size_t>(outputs), T(0.5));
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (T& value : a) value = uniform(random);
  for (T& value : x) value = uniform(random);
  multiply(outputs, k, a.data(), step, x.data(), y.data(), accumulates);
  for (int64_t i = 0; i < outputs; ++i) {
    double sum = accumulates ? 0.5 : 0;
    double absolute = sum;
    for (int64_t j = 0; j < k; ++j) {
      const size_t place = static_cast<size_t>(by_columns ? i + j * step : i * step + j);
      const double term = static_cast<double>(a[place]) * static_cast<double>(x[static_cast<size_t>(j)]);
      sum += term;
      absolute += std::abs(term);
    }
    ASSERT_NEAR(
        static_cast<double>(y[static_cast<size_t>(i)]), sum,
        static_cast<double>(std::numeric_limits<T>::epsilon()) * absolute * (8 + std::sqrt(static_cast<double>(k))))
        << absl::StrCat(sizeof(T), " bytes, ", outputs, " outputs, k ", k, ", gap ", gap, ", by columns ", by_columns);
  }
}

TEST(MatrixVectorLoopsTest, EqualNaiveLoops) {
  std::mt19937 random(1);
  for (const int64_t outputs : {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128}) {
    for (const int64_t k : {1, 2, 3, 8, 15, 16, 17, 64, 100, 255, 511, 512, 513, 1500}) {
      for (const bool by_columns : {false, true}) {
        const int64_t gap = static_cast<int64_t>(random() % 3);
        Check<float>(outputs, k, gap, by_columns, random() % 2 == 0, random);
        Check<double>(outputs, k, gap, by_columns, random() % 2 == 0, random);
      }
    }
  }
}

TEST(MatrixVectorLoopsTest, NanStaysInItsOutput) {
  const MatrixVectorLoops loops = GetMatrixVectorLoops(DType::kF64);
  if (loops.by_rows == nullptr) GTEST_SKIP() << "no vectors here";
  constexpr int64_t kSize = 19;
  std::vector<double> a(kSize * kSize, 1), x(kSize, 1), y(kSize);
  a[5 * kSize + 18] = std::numeric_limits<double>::quiet_NaN();
  loops.by_rows(kSize, kSize, a.data(), kSize, x.data(), y.data(), false);
  for (int64_t i = 0; i < kSize; ++i) EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), i == 5) << i;
  loops.by_columns(kSize, kSize, a.data(), kSize, x.data(), y.data(), false);
  for (int64_t i = 0; i < kSize; ++i) EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), i == 18) << i;
}

}  // namespace
}  // namespace tensord::cpu
