#include "backends/cpu/tridiagonal_vectors.h"

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
struct Tridiagonal {
  std::string name;
  std::vector<R> diagonal, beside;  // as many of both

  int64_t size() const { return static_cast<int64_t>(diagonal.size()); }
};

template <typename R>
struct Spectrum {
  int64_t info = 0;
  std::vector<R> values, vectors;
};

template <typename R>
Spectrum<R> Solve(const Tridiagonal<R>& matrix, int threads) {
  const int64_t n = matrix.size();
  const TridiagonalVectors<R> plan(n);
  std::vector<char> memory(static_cast<size_t>(plan.scratch_bytes()) + 64, 0x5a);
  char* scratch = memory.data();
  scratch += (64 - reinterpret_cast<uintptr_t>(scratch) % 64) % 64;
  Spectrum<R> spectrum{.values = matrix.diagonal, .vectors = std::vector<R>(static_cast<size_t>(n * n), R(7))};
  std::vector<R> beside = matrix.beside;
  ThreadPool pool(threads);
  spectrum.info = plan.Run(spectrum.values.data(), beside.data(), spectrum.vectors.data(), scratch, pool);
  return spectrum;
}

template <typename R>
double Norm(const Tridiagonal<R>& matrix) {
  double norm = 0;
  for (size_t i = 0; i < matrix.diagonal.size(); ++i) {
    norm = std::max({norm, std::abs(double{matrix.diagonal[i]}), std::abs(double{matrix.beside[i]})});
  }
  return norm;
}

// The largest parts of T·V - V·diag(values), beside the norm, and of V^T·V - 1, in multiples of n·epsilon.
template <typename R>
void ExpectVectors(const Tridiagonal<R>& matrix, const Spectrum<R>& spectrum) {
  const int64_t n = matrix.size();
  const auto vector = [&](int64_t j) { return spectrum.vectors.data() + j * n; };
  const double norm = Norm(matrix),
               bound = 2 * static_cast<double>(std::max<int64_t>(n, 10)) * double{std::numeric_limits<R>::epsilon()};
  double residual = 0, skewness = 0;
  for (int64_t j = 0; j < n; ++j) {
    const R* const v = vector(j);
    for (int64_t i = 0; i < n; ++i) {
      const size_t k = static_cast<size_t>(i);
      double sum = (double{matrix.diagonal[k]} - double{spectrum.values[static_cast<size_t>(j)]}) * v[i];
      if (i > 0) sum += double{matrix.beside[k - 1]} * v[i - 1];
      if (i + 1 < n) sum += double{matrix.beside[k]} * v[i + 1];
      residual = std::fmax(residual, std::abs(sum));
      ASSERT_FALSE(std::isnan(v[i]));
    }
    for (int64_t other = 0; other <= j; ++other) {
      double product = other == j ? -1 : 0;
      for (int64_t i = 0; i < n; ++i) product += double{v[i]} * vector(other)[i];
      skewness = std::fmax(skewness, std::abs(product));
    }
  }
  EXPECT_LE(residual, bound * norm);
  EXPECT_LE(skewness, bound);
}

// LAPACK's values without vectors are the oracle.
template <typename R>
void ExpectValues(const Tridiagonal<R>& matrix, const Spectrum<R>& spectrum) {
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end());
  ASSERT_EQ(lapack::Sterf(matrix.size(), diagonal.data(), beside.data()), 0);
  const double bound = 20 * std::sqrt(static_cast<double>(matrix.size() + 10)) * Norm(matrix) *
                       double{std::numeric_limits<R>::epsilon()};
  for (size_t i = 0; i < diagonal.size(); ++i) EXPECT_NEAR(spectrum.values[i], diagonal[i], bound) << i;
}

template <typename R>
Tridiagonal<R> Made(const std::string& name, int64_t n, const std::function<double(int64_t)>& diagonal,
                    const std::function<double(int64_t)>& beside) {
  Tridiagonal<R> matrix{.name = name + " of " + std::to_string(n)};
  for (int64_t i = 0; i < n; ++i) {
    matrix.diagonal.push_back(static_cast<R>(diagonal(i)));
    matrix.beside.push_back(static_cast<R>(beside(i)));
  }
  return matrix;
}

template <typename R>
std::vector<Tridiagonal<R>> Matrices(int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(n));
  std::uniform_real_distribution<double> any(-1, 1);
  const double tiny = std::is_same_v<R, float> ? 1e-30 : 1e-250, rounding = double{std::numeric_limits<R>::epsilon()};
  const auto draw = [&](int64_t) { return any(random); };
  const auto nothing = [](int64_t) { return 0.0; };
  const auto one = [](int64_t) { return 1.0; };
  const auto graded = [&](int64_t i) { return std::pow(rounding, static_cast<double>(i) / static_cast<double>(n)); };
  const auto wilkinson = [](int64_t i) { return std::abs(static_cast<double>(i % 21) - 10); };
  return {
      Made<R>("random", n, draw, draw),
      Made<R>("zero", n, nothing, nothing),
      Made<R>("identity", n, one, nothing),
      Made<R>("diagonal", n, draw, nothing),
      Made<R>(
          "second difference", n, [](int64_t) { return 2; }, [](int64_t) { return -1; }),
      Made<R>(
          "Wilkinson's", n, [n](int64_t i) { return std::abs(double(i) - double(n - 1) / 2); }, one),
      Made<R>("glued Wilkinson's", n, wilkinson, [&](int64_t i) { return i % 21 == 20 ? 10 * rounding : 1; }),
      Made<R>("torn", n, draw, [&](int64_t i) { return i % 37 == 36 ? 0 : any(random); }),
      Made<R>("graded", n, graded, [&](int64_t i) { return graded(i) / 3; }),
      Made<R>(
          "graded upwards", n, [&](int64_t i) { return graded(n - i); }, [&](int64_t i) { return graded(n - i); }),
      Made<R>(
          "a cluster", n, [&](int64_t i) { return i % 5 == 0 ? any(random) : 1; },
          [&](int64_t) { return any(random) * 10 * rounding; }),
      Made<R>("no diagonal", n, nothing, one),
      Made<R>("of rank one and rounding", n, one, [&](int64_t) { return 1 + any(random) * rounding; }),
      Made<R>(
          "tiny", n, [&](int64_t) { return any(random) * tiny; }, [&](int64_t) { return any(random) * tiny; }),
      Made<R>(
          "huge", n, [&](int64_t) { return any(random) / tiny; }, [&](int64_t) { return any(random) / tiny; }),
      Made<R>(
          "blocks of two scales", n, [&](int64_t i) { return any(random) * (2 * i < n ? 1 : 1e-12); },
          [&](int64_t i) { return 2 * i < n && 2 * (i + 2) > n ? 0 : any(random) * (2 * i < n ? 1 : 1e-12); }),
  };
}

template <typename R>
void ExpectSolved(const Tridiagonal<R>& matrix) {
  SCOPED_TRACE(matrix.name);
  const Spectrum<R> spectrum = Solve(matrix, 1);
  ASSERT_EQ(spectrum.info, 0);
  ExpectVectors(matrix, spectrum);
  ExpectValues(matrix, spectrum);
  const Spectrum<R> again = Solve(matrix, 3);
  EXPECT_TRUE(again.values == spectrum.values && again.vectors == spectrum.vectors) << "on three threads";
}

TEST(TridiagonalVectorsTest, AreOrthogonalVectorsOfTheirValues) {
  for (const int64_t n : {0, 1, 2, 3, 32, 33, 65, 128, 255, 256, 257, 400}) {
    for (const Tridiagonal<double>& matrix : Matrices<double>(n)) ExpectSolved(matrix);
    for (const Tridiagonal<float>& matrix : Matrices<float>(n)) ExpectSolved(matrix);
  }
}

// LAPACK's stedc would never ask.
TEST(TridiagonalVectorsTest, StopsWhereverItAsks) {
  const Tridiagonal<double> matrix = Matrices<double>(300)[0];
  int64_t asks = 0, last = std::numeric_limits<int64_t>::max();
  const StopSignal::Check check = [&] { return ++asks >= last ? absl::CancelledError("enough") : absl::OkStatus(); };
  const auto run = [&] {
    asks = 0;
    StopSignal stop(check, std::chrono::nanoseconds(0));
    const StopSignal::Scope scope(&stop);
    Solve(matrix, 1);
    return asks;
  };
  const int64_t all = run();
  EXPECT_GT(all, 300);
  for (last = 1; last <= all; last += 7) EXPECT_EQ(run(), last);
}

}  // namespace
}  // namespace tensord::cpu
