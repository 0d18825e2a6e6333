#include "backends/cpu/tridiagonalization.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/cpu/lapack.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

template <typename T>
struct Reduced {
  std::vector<T> a, diagonal, beside, tau;  // of a the lower triangle; zeros above
  friend bool operator==(const Reduced&, const Reduced&) = default;
};

template <typename T>
void FillAbove(int64_t n, T value, std::vector<T>* a) {
  for (int64_t j = 0; j < n; ++j) std::fill_n(a->begin() + j * n, j, value);
}

// What is above the diagonal is not a number and not looked at.
template <typename T>
Reduced<T> Reduce(std::vector<T> a, int64_t n, int threads) {
  FillAbove(n, std::numeric_limits<T>::quiet_NaN(), &a);
  const Tridiagonalization<T> tridiagonalization(n);
  const size_t size = static_cast<size_t>(n);
  Reduced<T> reduced{std::move(a), std::vector<T>(size), std::vector<T>(size - 1), std::vector<T>(size - 1)};
  std::vector<char> scratch(static_cast<size_t>(tridiagonalization.scratch_bytes() + 64), '\xff');
  char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  ThreadPool pool(threads);
  tridiagonalization.Run(reduced.a.data(), reduced.diagonal.data(), reduced.beside.data(), reduced.tau.data(), aligned,
                         pool);
  FillAbove(n, T(0), &reduced.a);
  return reduced;
}

int MultiplyByOrthogonal(char side, char transpose, int n, const Reduced<double>& x, std::vector<double>* c) {
  return LAPACKE_dormtr(LAPACK_COL_MAJOR, side, 'L', transpose, n, n, x.a.data(), n, x.tau.data(), c->data(), n);
}
int MultiplyByOrthogonal(char side, char transpose, int n, const Reduced<float>& x, std::vector<float>* c) {
  return LAPACKE_sormtr(LAPACK_COL_MAJOR, side, 'L', transpose, n, n, x.a.data(), n, x.tau.data(), c->data(), n);
}

// LAPACK's own routines take the reflectors as sytrd leaves them: Q·T·Q^T is the matrix.
template <typename T>
void ExpectReduces(int64_t n) {
  SCOPED_TRACE(n);
  std::mt19937_64 random(static_cast<uint64_t>(n));
  std::uniform_real_distribution<T> distribution(-1, 1);
  std::vector<T> a(static_cast<size_t>(n * n));
  for (T& x : a) x = distribution(random);
  const Reduced<T> reduced = Reduce(a, n, 1);
  EXPECT_EQ(reduced, Reduce(a, n, 3)) << "other bits on three threads";

  std::vector<T> product(a.size());
  for (int64_t i = 0; i < n; ++i) {
    product[static_cast<size_t>(i * (n + 1))] = reduced.diagonal[static_cast<size_t>(i)];
    if (i + 1 == n) break;
    const T beside = reduced.beside[static_cast<size_t>(i)];
    product[static_cast<size_t>(i * (n + 1) + 1)] = product[static_cast<size_t>((i + 1) * (n + 1) - 1)] = beside;
  }
  const int size = static_cast<int>(n);
  ASSERT_EQ(MultiplyByOrthogonal('L', 'N', size, reduced, &product), 0);
  ASSERT_EQ(MultiplyByOrthogonal('R', 'T', size, reduced, &product), 0);
  const T bound = 20 * std::sqrt(static_cast<T>(n)) * std::numeric_limits<T>::epsilon();
  T worst = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      const size_t at = static_cast<size_t>(j * n + i);
      worst = std::max(worst, std::abs(product[at] - a[at]));
    }
  }
  EXPECT_LT(worst, bound);
}

TEST(TridiagonalizationTest, GivesTheMatrixBack) {
  for (const int64_t n : {32, 33, 64, 65, 127, 160, 161, 300}) {
    if (Tridiagonalization<double>::Suits(n)) ExpectReduces<double>(n);
    if (Tridiagonalization<float>::Suits(n)) ExpectReduces<float>(n);
  }
}

}  // namespace
}  // namespace tensord::cpu
