#include "backends/cpu/linalg/divided/bidiagonal_vectors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/linalg/lapack_values.h"
#include "tests/unit/backends/cpu/linalg/narrow_matrix.h"

namespace tensord::cpu {
namespace {

// Vectors as columns of `u` and rows of `vh`.
template <typename R>
struct Factors {
  int64_t info = 0;
  std::vector<R> values, u, vh;
};

template <typename R>
Factors<R> FactorsOf(const NarrowMatrix<R>& matrix, bool is_upper, int threads) {
  const int64_t n = matrix.size(), leading = n + 3;
  const BidiagonalVectors<R> plan(n);
  std::vector<char> memory(static_cast<size_t>(plan.scratch_bytes()) + 64, 0x5a);
  char* scratch = memory.data();
  scratch += (64 - reinterpret_cast<uintptr_t>(scratch) % 64) % 64;
  const std::vector<R> room(static_cast<size_t>(leading * n), R(7));
  Factors<R> factors{.values = matrix.diagonal, .u = room, .vh = room};
  std::vector<R> beside = matrix.beside;
  ThreadPool pool(threads);
  factors.info = plan.Run(is_upper, factors.values.data(), beside.data(), {factors.u.data(), leading},
                          {factors.vh.data(), leading}, scratch, pool);
  return factors;
}

// The largest element of A^T·A - 1 for vectors that are columns, whose elements lie `step` apart.
template <typename R>
double Skewness(int64_t n, const R* a, int64_t step, int64_t leading) {
  Worst skewness;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t other = 0; other <= j; ++other) {
      double product = other == j ? -1 : 0;
      for (int64_t i = 0; i < n; ++i) product += double{a[j * leading + i * step]} * a[other * leading + i * step];
      skewness.See(product);
    }
  }
  return skewness.value();
}

// The largest element of B·V - U·diag(values).
template <typename R>
double Residual(const NarrowMatrix<R>& matrix, bool is_upper, const Factors<R>& factors) {
  const int64_t n = matrix.size(), leading = n + 3;
  Worst residual;
  for (int64_t j = 0; j < n; ++j) {
    const auto v = [&](int64_t i) { return double{factors.vh[static_cast<size_t>(i * leading + j)]}; };
    for (int64_t i = 0; i < n; ++i) {
      const size_t k = static_cast<size_t>(i);
      double sum = double{matrix.diagonal[k]} * v(i) - double{factors.values[static_cast<size_t>(j)]} *
                                                           double{factors.u[static_cast<size_t>(j * leading + i)]};
      if (is_upper && i + 1 < n) sum += double{matrix.beside[k]} * v(i + 1);
      if (!is_upper && i > 0) sum += double{matrix.beside[k - 1]} * v(i - 1);
      residual.See(sum);
    }
  }
  return residual.value();
}

// LAPACK's values without vectors are the oracle.
template <typename R>
void ExpectSingularValues(const NarrowMatrix<R>& matrix, bool is_upper, const Factors<R>& factors) {
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end()), work(4 * matrix.diagonal.size() + 1);
  ASSERT_EQ(lapack::BdsqrValues(is_upper, matrix.size(), diagonal.data(), beside.data(), work.data()), 0);
  for (size_t i = 0; i < diagonal.size(); ++i) EXPECT_NEAR(factors.values[i], diagonal[i], matrix.value_bound()) << i;
  EXPECT_TRUE(std::is_sorted(factors.values.rbegin(), factors.values.rend()));
  EXPECT_TRUE(std::all_of(factors.values.begin(), factors.values.end(), [](R value) { return value >= 0; }));
}

template <typename R>
void ExpectFactors(const NarrowMatrix<R>& matrix, bool is_upper) {
  SCOPED_TRACE(matrix.name + (is_upper ? ", upper" : ", lower"));
  const int64_t n = matrix.size(), leading = n + 3;
  const Factors<R> factors = FactorsOf(matrix, is_upper, 1);
  ASSERT_EQ(factors.info, 0);
  const double bound = matrix.vector_bound();
  EXPECT_LE(Residual(matrix, is_upper, factors), bound * matrix.largest());
  EXPECT_LE(Skewness(n, factors.u.data(), 1, leading), bound);
  EXPECT_LE(Skewness(n, factors.vh.data(), leading, 1), bound);
  ExpectSingularValues(matrix, is_upper, factors);
  for (int64_t j = 0; j < n; ++j) EXPECT_EQ(factors.u[static_cast<size_t>(j * leading + n)], 7);
  const Factors<R> again = FactorsOf(matrix, is_upper, 3);
  EXPECT_TRUE(again.values == factors.values && again.u == factors.u && again.vh == factors.vh) << "on three threads";
}

TEST(BidiagonalVectorsTest, AreOrthogonalVectorsOfTheirValues) {
  for (const int64_t n : {0, 1, 2, 3, 31, 32, 33, 66, 128, 255, 257, 383, 384}) {
    for (const NarrowMatrix<double>& matrix : NarrowMatrices<double>(n).All()) ExpectFactors(matrix, n % 2 == 0);
    for (const NarrowMatrix<float>& matrix : NarrowMatrices<float>(n).All()) ExpectFactors(matrix, n % 2 == 1);
  }
  ExpectFactors(NarrowMatrices<double>(1031).All()[0], /*is_upper=*/true);
  ExpectFactors(NarrowMatrices<float>(513).All()[0], /*is_upper=*/false);
}

// LAPACK's bdsdc would never ask.
TEST(BidiagonalVectorsTest, StopsWhereverItAsks) {
  const NarrowMatrix<double> matrix = NarrowMatrices<double>(300).All()[0];
  ExpectStopsWhereverItAsks(300, [&] { FactorsOf(matrix, /*is_upper=*/true, 1); });
}

}  // namespace
}  // namespace tensord::cpu
