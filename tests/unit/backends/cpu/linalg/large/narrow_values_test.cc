// Values of tridiagonal and bidiagonal matrices without vectors.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "backends/cpu/linalg/divided/bidiagonal_values.h"
#include "backends/cpu/linalg/divided/tridiagonal_values.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/linalg/lapack_values.h"
#include "tests/unit/backends/cpu/linalg/narrow_matrix.h"

namespace tensord::cpu {
namespace {

template <typename R>
std::vector<R> Eigenvalues(const NarrowMatrix<R>& matrix) {
  std::vector<R> values = matrix.diagonal, beside = matrix.beside;
  EXPECT_EQ(TridiagonalValues(matrix.size(), values.data(), beside.data()), 0);
  return values;
}

template <typename R>
std::vector<R> SingularValues(const NarrowMatrix<R>& matrix) {
  std::vector<R> values = matrix.diagonal, work(4 * matrix.diagonal.size(), R(7));
  EXPECT_EQ(BidiagonalValues(matrix.size(), values.data(), matrix.beside.data(), work.data()), 0);
  return values;
}

// LAPACK's, of the numbers in F64, are the oracle.
template <typename R>
void ExpectEigenvalues(const NarrowMatrix<R>& matrix) {
  SCOPED_TRACE(matrix.name);
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end());
  ASSERT_EQ(lapack::Sterf(matrix.size(), diagonal.data(), beside.data()), 0);
  const std::vector<R> values = Eigenvalues(matrix);
  for (size_t i = 0; i < diagonal.size(); ++i) EXPECT_NEAR(values[i], diagonal[i], matrix.value_bound()) << i;
}

// Small values have their digits too.
template <typename R>
void ExpectSingularValues(const NarrowMatrix<R>& matrix) {
  SCOPED_TRACE(matrix.name);
  std::vector<double> diagonal(matrix.diagonal.begin(), matrix.diagonal.end()),
      beside(matrix.beside.begin(), matrix.beside.end()), work(4 * matrix.diagonal.size() + 1);
  ASSERT_EQ(lapack::BdsqrValues(/*upper=*/true, matrix.size(), diagonal.data(), beside.data(), work.data()), 0);
  const std::vector<R> values = SingularValues(matrix);
  const double rounding = 4 * static_cast<double>(matrix.size() + 10) * double{std::numeric_limits<R>::epsilon()};
  const double vanishes = double{std::numeric_limits<R>::denorm_min()} +
                          matrix.largest() * std::pow(double{std::numeric_limits<R>::min()}, 0.75);
  for (size_t i = 0; i < diagonal.size(); ++i) {
    EXPECT_NEAR(values[i], diagonal[i], rounding * diagonal[i] + vanishes) << i;
  }
}

TEST(NarrowValuesTest, AreThoseOfLapack) {
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 33, 130, 385}) {
    for (const NarrowMatrix<double>& matrix : NarrowMatrices<double>(n).All()) {
      ExpectEigenvalues(matrix);
      ExpectSingularValues(matrix);
    }
    for (const NarrowMatrix<float>& matrix : NarrowMatrices<float>(n).All()) {
      ExpectEigenvalues(matrix);
      ExpectSingularValues(matrix);
    }
  }
}

// LAPACK's sterf and bdsqr would never ask.
TEST(NarrowValuesTest, StopsWhereverItAsks) {
  const NarrowMatrix<double> matrix = NarrowMatrices<double>(300).All()[0];
  ExpectStopsWhereverItAsks(300, [&] { Eigenvalues(matrix); });
  ExpectStopsWhereverItAsks(300, [&] { SingularValues(matrix); });
}

}  // namespace
}  // namespace tensord::cpu
