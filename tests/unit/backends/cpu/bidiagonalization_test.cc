#include "backends/cpu/bidiagonalization.h"

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
  std::vector<T> a, diagonal, beside, column_tau, row_tau;
  friend bool operator==(const Reduced&, const Reduced&) = default;
};

template <typename T>
Reduced<T> Reduce(std::vector<T> a, int64_t m, int64_t n, int threads) {
  const Bidiagonalization<T> bidiagonalization(m, n);
  const size_t k = static_cast<size_t>(std::min(m, n));
  Reduced<T> reduced{std::move(a), std::vector<T>(k), std::vector<T>(k - 1), std::vector<T>(k), std::vector<T>(k)};
  std::vector<char> scratch(static_cast<size_t>(bidiagonalization.scratch_bytes() + 64), '\xff');
  char* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  ThreadPool pool(threads);
  bidiagonalization.Run(reduced.a.data(), reduced.diagonal.data(), reduced.beside.data(), reduced.column_tau.data(),
                        reduced.row_tau.data(), aligned, pool);
  return reduced;
}

int MultiplyByOrthogonal(char which, char side, char transpose, int m, int k, const Reduced<double>& x, int leading,
                         std::vector<double>* c, int columns) {
  const std::vector<double>& tau = which == 'Q' ? x.column_tau : x.row_tau;
  return LAPACKE_dormbr(LAPACK_COL_MAJOR, which, side, transpose, m, columns, k, x.a.data(), leading, tau.data(),
                        c->data(), m);
}
int MultiplyByOrthogonal(char which, char side, char transpose, int m, int k, const Reduced<float>& x, int leading,
                         std::vector<float>* c, int columns) {
  const std::vector<float>& tau = which == 'Q' ? x.column_tau : x.row_tau;
  return LAPACKE_sormbr(LAPACK_COL_MAJOR, which, side, transpose, m, columns, k, x.a.data(), leading, tau.data(),
                        c->data(), m);
}

// LAPACK's own routines take the reflectors as gebrd leaves them: Q·B·P^T is the matrix.
template <typename T>
void ExpectReduces(int64_t m, int64_t n) {
  SCOPED_TRACE(testing::Message() << m << " x " << n);
  std::mt19937_64 random(static_cast<uint64_t>(m * 1000 + n));
  std::uniform_real_distribution<T> distribution(-1, 1);
  std::vector<T> a(static_cast<size_t>(m * n));
  for (T& x : a) x = distribution(random);
  const Reduced<T> reduced = Reduce(a, m, n, 1);
  EXPECT_EQ(reduced, Reduce(a, m, n, 3)) << "other bits on three threads";

  std::vector<T> product(a.size());
  const int64_t k = std::min(m, n), step = m >= n ? m : 1;
  for (int64_t i = 0; i < k; ++i) {
    product[static_cast<size_t>(i * (m + 1))] = reduced.diagonal[static_cast<size_t>(i)];
    if (i + 1 < k) product[static_cast<size_t>(i * (m + 1) + step)] = reduced.beside[static_cast<size_t>(i)];
  }
  const int rows = static_cast<int>(m), columns = static_cast<int>(n);
  ASSERT_EQ(MultiplyByOrthogonal('Q', 'L', 'N', rows, columns, reduced, rows, &product, columns), 0);
  ASSERT_EQ(MultiplyByOrthogonal('P', 'R', 'T', rows, rows, reduced, rows, &product, columns), 0);
  const T bound = 10 * std::sqrt(static_cast<T>(k)) * std::numeric_limits<T>::epsilon();
  T worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(product[i] - a[i]));
  EXPECT_LT(worst, bound);
}

TEST(BidiagonalizationTest, GivesTheMatrixBack) {
  for (const int64_t n : {1, 2, 31, 32, 33, 64, 200}) {
    for (const int64_t more : {0, 1, 30}) {
      ExpectReduces<double>(n + more, n);
      ExpectReduces<double>(n, n + more);
      ExpectReduces<float>(n + more, n);
      ExpectReduces<float>(n, n + more);
    }
  }
}

}  // namespace
}  // namespace tensord::cpu
