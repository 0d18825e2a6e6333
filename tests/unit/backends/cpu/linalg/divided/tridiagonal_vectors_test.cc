#include "backends/cpu/linalg/divided/tridiagonal_vectors.h"

#include <cstdint>
#include <vector>

#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/linalg/lapack_values.h"
#include "tests/unit/backends/cpu/linalg/narrow_matrix.h"

namespace tensord::cpu {
namespace {

template <typename R>
struct Spectrum {
  int64_t info = 0;
  std::vector<R> values, vectors;
};

template <typename R>
Spectrum<R> Solve(const NarrowMatrix<R>& matrix, int threads) {
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

// The largest parts of T·V - V·diag(values), beside the norm, and of V^T·V - 1, in multiples of n·epsilon.
template <typename R>
void ExpectVectors(const NarrowMatrix<R>& matrix, const Spectrum<R>& spectrum) {
  const int64_t n = matrix.size();
  const auto vector = [&](int64_t j) { return spectrum.vectors.data() + j * n; };
  Worst residual, skewness;
  for (int64_t j = 0; j < n; ++j) {
    const R* const v = vector(j);
    for (int64_t i = 0; i < n; ++i) {
      const size_t k = static_cast<size_t>(i);
      double sum = (double{matrix.diagonal[k]} - double{spectrum.values[static_cast<size_t>(j)]}) * v[i];
      if (i > 0) sum += double{matrix.beside[k - 1]} * v[i - 1];
      if (i + 1 < n) sum += double{matrix.beside[k]} * v[i + 1];
      residual.See(sum);
      ASSERT_FALSE(std::isnan(v[i]));
    }
    for (int64_t other = 0; other <= j; ++other) {
      double product = other == j ? -1 : 0;
      for (int64_t i = 0; i < n; ++i) product += double{v[i]} * vector(other)[i];
      skewness.See(product);
    }
  }
  EXPECT_LE(residual.value(), matrix.vector_bound() * matrix.largest());
  EXPECT_LE(skewness.value(), matrix.vector_bound());
}

// LAPACK's values without vectors are the oracle.
template <typename R>
void ExpectValues(const NarrowMatrix<R>& matrix, const Spectrum<R>& spectrum) {
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end());
  ASSERT_EQ(lapack::Sterf(matrix.size(), diagonal.data(), beside.data()), 0);
  for (size_t i = 0; i < diagonal.size(); ++i) EXPECT_NEAR(spectrum.values[i], diagonal[i], matrix.value_bound()) << i;
}

template <typename R>
void ExpectSolved(const NarrowMatrix<R>& matrix) {
  SCOPED_TRACE(matrix.name);
  const Spectrum<R> spectrum = Solve(matrix, 1);
  ASSERT_EQ(spectrum.info, 0);
  ExpectVectors(matrix, spectrum);
  ExpectValues(matrix, spectrum);
  const Spectrum<R> again = Solve(matrix, 3);
  EXPECT_TRUE(again.values == spectrum.values && again.vectors == spectrum.vectors) << "on three threads";
}

TEST(TridiagonalVectorsTest, AreOrthogonalVectorsOfTheirValues) {
  for (const int64_t n : {0, 1, 2, 3, 32, 33, 65, 128, 255, 257, 383, 384}) {
    for (const NarrowMatrix<double>& matrix : NarrowMatrices<double>(n).All()) ExpectSolved(matrix);
    for (const NarrowMatrix<float>& matrix : NarrowMatrices<float>(n).All()) ExpectSolved(matrix);
  }
  ExpectSolved(NarrowMatrices<double>(1031).All()[0]);
  ExpectSolved(NarrowMatrices<float>(513).All()[0]);
}

// LAPACK's stedc would never ask.
TEST(TridiagonalVectorsTest, StopsWhereverItAsks) {
  const NarrowMatrix<double> matrix = NarrowMatrices<double>(300).All()[0];
  ExpectStopsWhereverItAsks(300, [&] { Solve(matrix, 1); });
}

}  // namespace
}  // namespace tensord::cpu
