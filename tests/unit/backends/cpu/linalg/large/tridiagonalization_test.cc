#include "backends/cpu/linalg/large/tridiagonalization.h"
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
struct Tridiagonalized {
  std::vector<T> a, tau;  // of a the lower triangle; zeros above
  std::vector<lapack::Real<T>> diagonal, beside;
  friend bool operator==(const Tridiagonalized&, const Tridiagonalized&) = default;
};

template <typename T>
void FillAbove(int64_t n, T value, std::vector<T>* a) {
  for (int64_t j = 0; j < n; ++j) std::fill_n(a->begin() + j * n, j, value);
}

// Elements above the diagonal are NaN and not read.
template <typename T>
Tridiagonalized<T> Reduce(std::vector<T> a, int64_t n, int threads) {
  FillAbove(n, T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()), &a);
  const Tridiagonalization<T> tridiagonalization(n);
  const size_t size = static_cast<size_t>(n);
  Tridiagonalized<T> reduced{.a = std::move(a), .tau{}, .diagonal{}, .beside{}};
  reduced.tau.resize(size - 1);
  reduced.diagonal.resize(size);
  reduced.beside.resize(size - 1);
  std::vector<char> scratch(static_cast<size_t>(tridiagonalization.scratch_bytes() + 64), '\xff');
  char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  UseSerialBlas();  // as the backend does
  ThreadPool pool(threads);
  tridiagonalization.Run(reduced.a.data(), reduced.diagonal.data(), reduced.beside.data(), reduced.tau.data(), aligned,
                         pool);
  FillAbove(n, T(0), &reduced.a);
  return reduced;
}

#define TENSORD_MULTIPLY(T, name)                                                                                   \
  int MultiplyByUnitary(char side, char transpose, int n, const Tridiagonalized<T>& x, std::vector<T>* c) {         \
    return LAPACKE_##name(LAPACK_COL_MAJOR, side, 'L', transpose, n, n, x.a.data(), n, x.tau.data(), c->data(), n); \
  }
TENSORD_MULTIPLY(float, sormtr)
TENSORD_MULTIPLY(double, dormtr)
TENSORD_MULTIPLY(lapack::Complex64, cunmtr)
TENSORD_MULTIPLY(lapack::Complex128, zunmtr)
#undef TENSORD_MULTIPLY

// Returns the lower triangle of a Hermitian matrix, with imaginary parts on the diagonal, which are not read.
template <typename T>
std::vector<T> RandomMatrix(int64_t n) {
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::uniform_real_distribution<lapack::Real<T>> distribution(-1, 1);
  std::vector<T> a(static_cast<size_t>(n * n));
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

// LAPACK's own routines take the reflectors as sytrd and hetrd leave them: Q·T·Q^H is the matrix.
template <typename T>
void ExpectReduces(const std::vector<T>& a, int64_t n) {
  using R = lapack::Real<T>;
  SCOPED_TRACE(n);
  const Tridiagonalized<T> reduced = Reduce(a, n, 1);
  EXPECT_EQ(reduced, Reduce(a, n, 2)) << "other bits on two threads";
  EXPECT_EQ(reduced, Reduce(a, n, 4)) << "other bits on four threads";

  std::vector<T> product(a.size());
  for (int64_t i = 0; i < n; ++i) {
    product[static_cast<size_t>(i * (n + 1))] = reduced.diagonal[static_cast<size_t>(i)];
    if (i + 1 == n) break;
    const R beside = reduced.beside[static_cast<size_t>(i)];
    product[static_cast<size_t>(i * (n + 1) + 1)] = product[static_cast<size_t>((i + 1) * (n + 1) - 1)] = beside;
  }
  const int size = static_cast<int>(n);
  ASSERT_EQ(MultiplyByUnitary('L', 'N', size, reduced, &product), 0);
  ASSERT_EQ(MultiplyByUnitary('R', lapack::kIsComplex<T> ? 'C' : 'T', size, reduced, &product), 0);
  const R bound = 20 * std::sqrt(static_cast<R>(n)) * std::numeric_limits<R>::epsilon();
  R worst = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      const size_t at = static_cast<size_t>(j * n + i);
      worst = std::max(worst, std::abs(product[at] - (i == j ? T(std::real(a[at])) : a[at])));
    }
  }
  EXPECT_LT(worst, bound);
}

template <typename T>
class TridiagonalizationTest : public testing::Test {};
using Numbers = testing::Types<float, double, lapack::Complex64, lapack::Complex128>;
TYPED_TEST_SUITE(TridiagonalizationTest, Numbers);

TYPED_TEST(TridiagonalizationTest, GivesTheMatrixBack) {
  for (const int64_t n : {32, 33, 64, 65, 127, 128, 129, 130, 160, 161, 257, 300}) {
    if (Tridiagonalization<TypeParam>::Suits(n)) ExpectReduces(RandomMatrix<TypeParam>(n), n);
  }
}

TYPED_TEST(TridiagonalizationTest, OnEachInstructionSet) {
  constexpr int64_t kSize = 129;
  ForEachInstructionSet([](const char*) {
    if (Tridiagonalization<TypeParam>::Suits(kSize)) ExpectReduces(RandomMatrix<TypeParam>(kSize), kSize);
  });
}

// A column that has nothing to reflect has a tau of zero.
TYPED_TEST(TridiagonalizationTest, LeavesZerosAlone) {
  constexpr int64_t kSize = 130;
  if (!Tridiagonalization<TypeParam>::Suits(kSize)) GTEST_SKIP();
  std::vector<TypeParam> a = RandomMatrix<TypeParam>(kSize);
  for (const int64_t j : {0, 15, 16, 17, 70, 128}) {
    for (int64_t i = 0; i < kSize; ++i) {
      a[static_cast<size_t>(j * kSize + i)] = a[static_cast<size_t>(i * kSize + j)] = TypeParam(0);
    }
  }
  ExpectReduces(a, kSize);
  EXPECT_EQ(Reduce(a, kSize, 1).tau[0], TypeParam(0));
  std::fill(a.begin(), a.end(), TypeParam(0));
  ExpectReduces(a, kSize);
}

// Complex ones of which only real parts are there become what real ones become.
TYPED_TEST(TridiagonalizationTest, TakesRealEntries) {
  using R = lapack::Real<TypeParam>;
  constexpr int64_t kSize = 161;
  if (!Tridiagonalization<TypeParam>::Suits(kSize)) GTEST_SKIP();
  const std::vector<R> real = RandomMatrix<R>(kSize);
  const std::vector<TypeParam> a(real.begin(), real.end());
  ExpectReduces(a, kSize);
  const Tridiagonalized<TypeParam> reduced = Reduce(a, kSize, 2);
  const Tridiagonalized<R> expected = Reduce(real, kSize, 2);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(std::imag(reduced.tau[i]), R(0));
    EXPECT_NEAR(reduced.diagonal[i], expected.diagonal[i], 1000 * std::numeric_limits<R>::epsilon());
  }
}

}  // namespace
}  // namespace tensord::cpu
