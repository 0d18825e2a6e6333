#include "backends/cpu/linalg/large/bidiagonalization.h"
#include "backends/cpu/machine/blas.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/linalg/lapack/lapack.h"
#include "backends/cpu/matmul/gemm.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

template <typename T>
struct Bidiagonalized {
  std::vector<T> a, column_tau, row_tau;
  std::vector<lapack::Real<T>> diagonal, beside;
  friend bool operator==(const Bidiagonalized&, const Bidiagonalized&) = default;
};

template <typename T>
Bidiagonalized<T> Reduce(std::vector<T> a, int64_t m, int64_t n, int threads) {
  const Bidiagonalization<T> bidiagonalization(m, n);
  const size_t k = static_cast<size_t>(std::min(m, n));
  Bidiagonalized<T> reduced{.a = std::move(a), .column_tau{}, .row_tau{}, .diagonal{}, .beside{}};
  reduced.column_tau.resize(k);
  reduced.row_tau.resize(k);
  reduced.diagonal.resize(k);
  reduced.beside.resize(k - 1);
  std::vector<char> scratch(static_cast<size_t>(bidiagonalization.scratch_bytes() + 64), '\xff');
  char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  UseSerialBlas();  // as the backend does
  ThreadPool pool(threads);
  bidiagonalization.Run(reduced.a.data(), reduced.diagonal.data(), reduced.beside.data(), reduced.column_tau.data(),
                        reduced.row_tau.data(), aligned, pool);
  return reduced;
}

#define TENSORD_MULTIPLY(T, name)                                                                             \
  int MultiplyByUnitary(char which, char side, char transpose, int m, int k, const Bidiagonalized<T>& x,      \
                        std::vector<T>* c, int columns) {                                                     \
    const std::vector<T>& tau = which == 'Q' ? x.column_tau : x.row_tau;                                      \
    return LAPACKE_##name(LAPACK_COL_MAJOR, which, side, transpose, m, columns, k, x.a.data(), m, tau.data(), \
                          c->data(), m);                                                                      \
  }
TENSORD_MULTIPLY(float, sormbr)
TENSORD_MULTIPLY(double, dormbr)
TENSORD_MULTIPLY(lapack::Complex64, cunmbr)
TENSORD_MULTIPLY(lapack::Complex128, zunmbr)
#undef TENSORD_MULTIPLY

template <typename T>
std::vector<T> RandomMatrix(int64_t m, int64_t n) {
  std::mt19937_64 random(static_cast<uint64_t>(m * 1000 + n));
  std::uniform_real_distribution<lapack::Real<T>> distribution(-1, 1);
  std::vector<T> a(static_cast<size_t>(m * n));
  for (T& x : a) {
    if constexpr (lapack::kIsComplex<T>) {
      const auto real = distribution(random);
      x = T(real, distribution(random));
    } else {
      x = distribution(random);
    }
  }
  return a;
}

// LAPACK's own routines take the reflectors as gebrd leaves them: Q·B·P^H is the matrix.
template <typename T>
void ExpectReduces(const std::vector<T>& a, int64_t m, int64_t n) {
  using R = lapack::Real<T>;
  SCOPED_TRACE(testing::Message() << m << " x " << n);
  const Bidiagonalized<T> reduced = Reduce(a, m, n, 1);
  EXPECT_EQ(reduced, Reduce(a, m, n, 2)) << "other bits on two threads";
  EXPECT_EQ(reduced, Reduce(a, m, n, 4)) << "other bits on four threads";

  std::vector<T> product(a.size());
  const int64_t k = std::min(m, n), step = m >= n ? m : 1;
  for (int64_t i = 0; i < k; ++i) {
    product[static_cast<size_t>(i * (m + 1))] = reduced.diagonal[static_cast<size_t>(i)];
    if (i + 1 < k) product[static_cast<size_t>(i * (m + 1) + step)] = reduced.beside[static_cast<size_t>(i)];
  }
  const int rows = static_cast<int>(m), columns = static_cast<int>(n);
  ASSERT_EQ(MultiplyByUnitary('Q', 'L', 'N', rows, columns, reduced, &product, columns), 0);
  ASSERT_EQ(MultiplyByUnitary('P', 'R', lapack::kIsComplex<T> ? 'C' : 'T', rows, rows, reduced, &product, columns), 0);
  const R bound = 10 * std::sqrt(static_cast<R>(k)) * std::numeric_limits<R>::epsilon();
  R worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(product[i] - a[i]));
  EXPECT_LT(worst, bound);
}

template <typename T>
class BidiagonalizationTest : public testing::Test {};
using Numbers = testing::Types<float, double, lapack::Complex64, lapack::Complex128>;
TYPED_TEST_SUITE(BidiagonalizationTest, Numbers);

TYPED_TEST(BidiagonalizationTest, GivesTheMatrixBack) {
  for (const int64_t n : {1, 2, 31, 32, 33, 64, 127, 128, 129, 130, 160, 161, 200, 257}) {
    for (const int64_t more : {0, 1, 30}) {
      ExpectReduces(RandomMatrix<TypeParam>(n + more, n), n + more, n);
      if (more > 0) ExpectReduces(RandomMatrix<TypeParam>(n, n + more), n, n + more);
    }
  }
}

TYPED_TEST(BidiagonalizationTest, OnEachInstructionSet) {
  ForEachInstructionSet([](const char*) {
    ExpectReduces(RandomMatrix<TypeParam>(129, 100), 129, 100);
    ExpectReduces(RandomMatrix<TypeParam>(100, 129), 100, 129);
  });
}

// A column or a row that has nothing to reflect has a tau of zero.
TYPED_TEST(BidiagonalizationTest, LeavesZerosAlone) {
  for (const auto& [m, n] : {std::pair{130, 100}, {100, 130}}) {
    std::vector<TypeParam> a = RandomMatrix<TypeParam>(m, n);
    for (const int64_t j : {0, 31, 32, 33, 70, 99}) {
      std::fill_n(a.begin() + j * m, m, TypeParam(0));
      for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * m + j)] = TypeParam(0);
    }
    ExpectReduces(a, m, n);
    EXPECT_EQ((m >= n ? Reduce(a, m, n, 1).column_tau : Reduce(a, m, n, 1).row_tau)[0], TypeParam(0));
    std::fill(a.begin(), a.end(), TypeParam(0));
    ExpectReduces(a, m, n);
  }
}

// Complex ones of which only real parts are there become what real ones become.
TYPED_TEST(BidiagonalizationTest, TakesRealEntries) {
  using R = lapack::Real<TypeParam>;
  constexpr int64_t kRows = 161, kColumns = 140;
  const std::vector<R> real = RandomMatrix<R>(kRows, kColumns);
  const std::vector<TypeParam> a(real.begin(), real.end());
  ExpectReduces(a, kRows, kColumns);
  const Bidiagonalized<TypeParam> reduced = Reduce(a, kRows, kColumns, 2);
  const Bidiagonalized<R> expected = Reduce(real, kRows, kColumns, 2);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(std::imag(reduced.column_tau[i]), R(0));
    EXPECT_NEAR(reduced.diagonal[i], expected.diagonal[i], 1000 * std::numeric_limits<R>::epsilon());
  }
}

}  // namespace
}  // namespace tensord::cpu
