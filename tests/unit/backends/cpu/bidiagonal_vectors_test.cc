#include "backends/cpu/bidiagonal_vectors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/lapack_steps.h"
#include "backends/cpu/thread_pool.h"
#include "engine/base/stop_signal.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

template <typename R>
struct Bidiagonal {
  std::string name;
  std::vector<R> diagonal, beside;  // as many of both

  int64_t size() const { return static_cast<int64_t>(diagonal.size()); }
};

// Of vectors as columns of `u` and rows of `vh`.
template <typename R>
struct Factors {
  int64_t info = 0;
  std::vector<R> values, u, vh;
};

template <typename R>
Factors<R> FactorsOf(const Bidiagonal<R>& matrix, bool is_upper, int threads) {
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

template <typename R>
double LargestNumber(const Bidiagonal<R>& matrix) {
  double norm = 0;
  for (size_t i = 0; i < matrix.diagonal.size(); ++i) {
    norm = std::max({norm, std::abs(double{matrix.diagonal[i]}), std::abs(double{matrix.beside[i]})});
  }
  return norm;
}

// The largest element of A^T·A - 1 for vectors that are columns, whose elements lie `step` apart.
template <typename R>
double Skewness(int64_t n, const R* a, int64_t step, int64_t leading) {
  double skewness = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t other = 0; other <= j; ++other) {
      double product = other == j ? -1 : 0;
      for (int64_t i = 0; i < n; ++i) product += double{a[j * leading + i * step]} * a[other * leading + i * step];
      if (!(std::abs(product) <= skewness)) skewness = std::abs(product);
    }
  }
  return skewness;
}

// The largest element of B·V - U·diag(values).
template <typename R>
double Residual(const Bidiagonal<R>& matrix, bool is_upper, const Factors<R>& factors) {
  const int64_t n = matrix.size(), leading = n + 3;
  double residual = 0;
  for (int64_t j = 0; j < n; ++j) {
    const auto v = [&](int64_t i) { return double{factors.vh[static_cast<size_t>(i * leading + j)]}; };
    for (int64_t i = 0; i < n; ++i) {
      const size_t k = static_cast<size_t>(i);
      double sum = double{matrix.diagonal[k]} * v(i) - double{factors.values[static_cast<size_t>(j)]} *
                                                           double{factors.u[static_cast<size_t>(j * leading + i)]};
      if (is_upper && i + 1 < n) sum += double{matrix.beside[k]} * v(i + 1);
      if (!is_upper && i > 0) sum += double{matrix.beside[k - 1]} * v(i - 1);
      if (!(std::abs(sum) <= residual)) residual = std::abs(sum);
    }
  }
  return residual;
}

// LAPACK's values without vectors are the oracle.
template <typename R>
void ExpectSingularValues(const Bidiagonal<R>& matrix, bool is_upper, const Factors<R>& factors) {
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end()), work(4 * matrix.diagonal.size() + 1);
  ASSERT_EQ(lapack::BdsqrValues(is_upper, matrix.size(), diagonal.data(), beside.data(), work.data()), 0);
  const double bound = 20 * std::sqrt(static_cast<double>(matrix.size() + 10)) * LargestNumber(matrix) *
                       double{std::numeric_limits<R>::epsilon()};
  for (size_t i = 0; i < diagonal.size(); ++i) EXPECT_NEAR(factors.values[i], diagonal[i], bound) << i;
  EXPECT_TRUE(std::is_sorted(factors.values.rbegin(), factors.values.rend()));
  EXPECT_TRUE(std::all_of(factors.values.begin(), factors.values.end(), [](R value) { return value >= 0; }));
}

template <typename R>
Bidiagonal<R> MadeBidiagonal(const std::string& name, int64_t n, const std::function<double(int64_t)>& diagonal,
                             const std::function<double(int64_t)>& beside) {
  Bidiagonal<R> matrix{.name = name + " of " + std::to_string(n)};
  for (int64_t i = 0; i < n; ++i) {
    matrix.diagonal.push_back(static_cast<R>(diagonal(i)));
    matrix.beside.push_back(static_cast<R>(beside(i)));
  }
  return matrix;
}

template <typename R>
std::vector<Bidiagonal<R>> BidiagonalMatrices(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::uniform_real_distribution<double> any(-1, 1);
  const double tiny = std::is_same_v<R, float> ? 1e-30 : 1e-250, rounding = double{std::numeric_limits<R>::epsilon()};
  const auto draw = [&](int64_t) { return any(random); };
  const auto nothing = [](int64_t) { return 0.0; };
  const auto one = [](int64_t) { return 1.0; };
  const auto graded = [&](int64_t i) { return std::pow(rounding, static_cast<double>(i) / static_cast<double>(n)); };
  const auto steep = [&](int64_t i) { return std::pow(tiny, static_cast<double>(i) / static_cast<double>(n)); };
  return {
      MadeBidiagonal<R>("random", n, draw, draw),
      MadeBidiagonal<R>("zero", n, nothing, nothing),
      MadeBidiagonal<R>("identity", n, one, nothing),
      MadeBidiagonal<R>("diagonal", n, draw, nothing),
      MadeBidiagonal<R>("no diagonal", n, nothing, one),
      MadeBidiagonal<R>("ones", n, one, one),
      MadeBidiagonal<R>("torn", n, draw, [&](int64_t i) { return i % 37 == 36 ? 0 : any(random); }),
      MadeBidiagonal<R>(
          "of deficient rank", n, [&](int64_t i) { return i % 11 == 5 ? 0 : any(random); }, draw),
      MadeBidiagonal<R>("graded", n, graded, [&](int64_t i) { return graded(i) / 3; }),
      MadeBidiagonal<R>(
          "graded upwards", n, [&](int64_t i) { return graded(n - i); }, [&](int64_t i) { return graded(n - i); }),
      MadeBidiagonal<R>("steep", n, steep, steep),
      MadeBidiagonal<R>(
          "a cluster", n, [&](int64_t i) { return i % 5 == 0 ? any(random) : 1; },
          [&](int64_t) { return any(random) * 10 * rounding; }),
      MadeBidiagonal<R>(
          "glued", n, [](int64_t i) { return std::abs(static_cast<double>(i % 21) - 10); },
          [&](int64_t i) { return i % 21 == 20 ? 10 * rounding : 1; }),
      MadeBidiagonal<R>(
          "tiny", n, [&](int64_t) { return any(random) * tiny; }, [&](int64_t) { return any(random) * tiny; }),
      MadeBidiagonal<R>(
          "huge", n, [&](int64_t) { return any(random) / tiny; }, [&](int64_t) { return any(random) / tiny; }),
  };
}

template <typename R>
void ExpectFactors(const Bidiagonal<R>& matrix, bool is_upper) {
  SCOPED_TRACE(matrix.name + (is_upper ? ", upper" : ", lower"));
  const int64_t n = matrix.size(), leading = n + 3;
  const Factors<R> factors = FactorsOf(matrix, is_upper, 1);
  ASSERT_EQ(factors.info, 0);
  const double bound = 2 * static_cast<double>(std::max<int64_t>(n, 10)) * double{std::numeric_limits<R>::epsilon()};
  EXPECT_LE(Residual(matrix, is_upper, factors), bound * LargestNumber(matrix));
  EXPECT_LE(Skewness(n, factors.u.data(), 1, leading), bound);
  EXPECT_LE(Skewness(n, factors.vh.data(), leading, 1), bound);
  ExpectSingularValues(matrix, is_upper, factors);
  for (int64_t j = 0; j < n; ++j) EXPECT_EQ(factors.u[static_cast<size_t>(j * leading + n)], 7);
  const Factors<R> again = FactorsOf(matrix, is_upper, 3);
  EXPECT_TRUE(again.values == factors.values && again.u == factors.u && again.vh == factors.vh) << "on three threads";
}

TEST(BidiagonalVectorsTest, AreOrthogonalVectorsOfTheirValues) {
  for (const int64_t n : {0, 1, 2, 3, 31, 32, 33, 66, 128, 255, 256, 257, 400}) {
    for (const Bidiagonal<double>& matrix : BidiagonalMatrices<double>(n)) ExpectFactors(matrix, n % 2 == 0);
    for (const Bidiagonal<float>& matrix : BidiagonalMatrices<float>(n)) ExpectFactors(matrix, n % 2 == 1);
  }
}

// LAPACK's bdsdc would never ask.
TEST(BidiagonalVectorsTest, StopsWhereverItAsks) {
  const Bidiagonal<double> matrix = BidiagonalMatrices<double>(300)[0];
  int64_t asks = 0, last = std::numeric_limits<int64_t>::max();
  const StopSignal::Check check = [&] { return ++asks >= last ? absl::CancelledError("enough") : absl::OkStatus(); };
  const auto run = [&] {
    asks = 0;
    StopSignal stop(check, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    FactorsOf(matrix, /*is_upper=*/true, 1);
    return asks;
  };
  const int64_t all = run();
  EXPECT_GT(all, 300);
  for (last = 1; last <= all; last += 7) EXPECT_EQ(run(), last);
}

}  // namespace
}  // namespace tensord::cpu
