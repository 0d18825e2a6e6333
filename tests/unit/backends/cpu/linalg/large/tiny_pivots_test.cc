#include "backends/cpu/linalg/large/tiny_pivots.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/linalg/large/lu_factors.h"
#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

template <typename T>
class DrawnNumbers {
 public:
  std::vector<T> Draw(int64_t count) {
    std::vector<T> numbers(static_cast<size_t>(count));
    for (T& x : numbers) {
      if constexpr (lapack::kIsComplex<T>) {
        x = T(Part(), Part());
      } else {
        x = Part();
      }
    }
    return numbers;
  }

 private:
  lapack::Real<T> Part() { return static_cast<lapack::Real<T>>(draw_(random_)); }

  std::mt19937 random_{7};
  std::uniform_real_distribution<double> draw_{-1, 1};
};

template <typename T>
class TinyPivotsTest : public testing::Test {};
using Types = testing::Types<float, double, lapack::Complex64, lapack::Complex128>;
TYPED_TEST_SUITE(TinyPivotsTest, Types);

// Beside the factors of the same matrix with an ordinary column, that of U is as small and all else is the same.
TYPED_TEST(TinyPivotsTest, FactorsOfASubnormalColumnAreFinite) {
  using R = lapack::Real<TypeParam>;
  const R tiny = std::numeric_limits<R>::denorm_min() * 4096;
  ThreadPool pool(2);
  for (const int64_t n : {17, 33, 64, 100, 127, 130, 200}) {
    const std::vector<TypeParam> ordinary = DrawnNumbers<TypeParam>().Draw(n * n);
    std::vector<TypeParam> small = ordinary;
    const int64_t column = n / 2;
    for (int64_t i = 0; i < n; ++i) small[static_cast<size_t>(column * n + i)] *= tiny;
    const LuFactors<TypeParam> factors(n, n);
    std::vector<char> scratch(static_cast<size_t>(factors.scratch_bytes()) + 64);
    char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    std::vector<TypeParam> of_ordinary = ordinary, of_small = small;
    std::vector<lapack_int> pivots(static_cast<size_t>(n)), ordinary_pivots = pivots;
    ASSERT_EQ(factors.Run(ordinary.data(), of_ordinary.data(), ordinary_pivots.data(), aligned, pool), 0);
    ASSERT_EQ(factors.Run(small.data(), of_small.data(), pivots.data(), aligned, pool), 0);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i < n; ++i) {
        const TypeParam got = of_small[static_cast<size_t>(j * n + i)];
        ASSERT_TRUE(std::isfinite(std::abs(got))) << i << ", " << j << " of " << n;
        // Before it nothing has changed; a subnormal column may have other pivots, since it has few digits.
        if (j < column && i < column) {
          EXPECT_LE(std::abs(got - of_ordinary[static_cast<size_t>(j * n + i)]),
                    R(n) * std::numeric_limits<R>::epsilon() * 8);
        }
      }
    }
    EXPECT_TRUE(HasTinyPivot(of_small.data(), n, n));
    EXPECT_FALSE(HasTinyPivot(of_ordinary.data(), n, n));
  }
}

TYPED_TEST(TinyPivotsTest, DivisionIsLapackOfOrdinaryNumbers) {
  using R = lapack::Real<TypeParam>;
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{30, 20}, {20, 30}, {25, 25}, {1, 1}, {3, 1}}) {
    const std::vector<TypeParam> a = DrawnNumbers<TypeParam>().Draw(m * n);
    std::vector<TypeParam> ours = a, theirs = a;
    std::vector<lapack_int> pivots(static_cast<size_t>(std::min(m, n))), of_lapack = pivots;
    EXPECT_EQ(FactorByDivision(m, n, ours.data(), pivots.data()), 0);
    EXPECT_EQ(lapack::Getrf(m, n, theirs.data(), m, of_lapack.data()), 0);
    EXPECT_EQ(pivots, of_lapack);
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_LE(std::abs(ours[i] - theirs[i]), 100 * std::numeric_limits<R>::epsilon()) << i;
    }
  }
  std::vector<TypeParam> zero(9);
  std::vector<lapack_int> pivots(3);
  EXPECT_EQ(FactorByDivision(3, 3, zero.data(), pivots.data()), 1);
}

TYPED_TEST(TinyPivotsTest, SubstitutionIsTrsm) {
  using R = lapack::Real<TypeParam>;
  constexpr int64_t kRows = 9, kColumns = 4;
  for (const bool left : {false, true}) {
    const int64_t size = left ? kRows : kColumns;
    std::vector<TypeParam> a = DrawnNumbers<TypeParam>().Draw(size * size);
    for (int64_t i = 0; i < size; ++i) a[static_cast<size_t>(i * (size + 1))] += TypeParam(4);
    const std::vector<TypeParam> b = DrawnNumbers<TypeParam>().Draw(kRows * kColumns);
    for (const bool lower : {false, true}) {
      for (const bool unit : {false, true}) {
        for (const CBLAS_TRANSPOSE transpose : {CblasNoTrans, CblasTrans, CblasConjTrans}) {
          const lapack::Triangle triangle{.left = left, .lower = lower, .transpose = transpose, .unit_diagonal = unit};
          std::vector<TypeParam> ours = b, theirs = b;
          SolveByDivision(triangle, kRows, kColumns, a.data(), size, ours.data(), kRows);
          lapack::Trsm(triangle, kRows, kColumns, a.data(), size, theirs.data(), kRows);
          for (size_t i = 0; i < b.size(); ++i) {
            EXPECT_LE(std::abs(ours[i] - theirs[i]),
                      (1 + std::abs(theirs[i])) * 100 * std::numeric_limits<R>::epsilon())
                << left << lower << unit << transpose << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensord::cpu
