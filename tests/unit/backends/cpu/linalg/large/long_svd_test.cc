// Matrices with one long side and one that is short: what one call of LAPACK would take all its time for.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

#include "backends/cpu/linalg/large/oblong_svd.h"
#include "backends/cpu/linalg/large/small_svd.h"
#include "backends/cpu/linalg/large/values.h"
#include "backends/cpu/machine/thread_pool.h"
#include "gtest/gtest.h"

namespace tensord::cpu {
namespace {

template <typename T>
std::vector<T> RandomNumbers(int64_t count) {
  std::mt19937 random(static_cast<uint32_t>(count));
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& x : numbers) {
    const auto part = [&] { return static_cast<lapack::Real<T>>(draw(random)); };
    if constexpr (lapack::kIsComplex<T>) {
      x = T(part(), part());
    } else {
      x = part();
    }
  }
  return numbers;
}

class Scratch {
 public:
  explicit Scratch(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 64, 0x5a) {}
  char* data() {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (64 - begin % 64) % 64;
  }

 private:
  std::vector<char> memory_;
};

template <typename T>
void ExpectFactors(int64_t m, int64_t n, bool full) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " of " << sizeof(T) << " bytes");
  using R = lapack::Real<T>;
  const int64_t few = std::min(m, n);
  const std::vector<T> a = RandomNumbers<T>(m * n);
  ThreadPool pool(2);
  const int64_t u_columns = full ? m : few, vh_rows = full ? n : few;
  std::vector<T> u(static_cast<size_t>(m * u_columns), T(7)), vh(static_cast<size_t>(vh_rows * n), T(7));
  std::vector<R> s(static_cast<size_t>(few)), alone(static_cast<size_t>(few));
  const OblongSvd<T> svd(m, n, full);
  ASSERT_EQ(svd.Run(a.data(), u.data(), s.data(), vh.data(), Scratch(svd.scratch_bytes()).data(), pool), 0);
  const R bound = 100 * std::numeric_limits<R>::epsilon() * std::sqrt(static_cast<R>(m * n));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      T sum = 0;
      for (int64_t k = 0; k < few; ++k) {
        sum += u[static_cast<size_t>(k * m + i)] * s[static_cast<size_t>(k)] * vh[static_cast<size_t>(j * vh_rows + k)];
      }
      ASSERT_LE(std::abs(sum - a[static_cast<size_t>(j * m + i)]), bound);
    }
  }
  // Rows of square unitary matrices are of norm 1.
  for (const auto& [vectors, rows, columns] : {std::tuple(&u, m, u_columns), std::tuple(&vh, vh_rows, n)}) {
    for (int64_t i = 0; i < rows && rows == columns; ++i) {
      R squares = 0;
      for (int64_t j = 0; j < columns; ++j) squares += std::norm((*vectors)[static_cast<size_t>(j * rows + i)]);
      EXPECT_LE(std::abs(squares - 1), bound);
    }
  }
  const LargeSvdValues<T> values(m, n);
  ASSERT_EQ(values.Run(a.data(), alone.data(), Scratch(values.scratch_bytes()).data(), pool), 0);
  for (size_t k = 0; k < s.size(); ++k) EXPECT_LE(std::abs(s[k] - alone[k]), bound) << k;
}

TEST(LongSvdTest, HasFewRowsOrColumns) {
  for (const int64_t few : {1, 2, 3, 16, 31, 33, 64, 100, 127}) {
    for (const bool is_wide : {false, true}) {
      const int64_t m = is_wide ? few : 300, n = is_wide ? 300 : few;
      for (const bool full : {false, true}) {
        ExpectFactors<float>(m, n, full);
        ExpectFactors<double>(m, n, full);
        ExpectFactors<lapack::Complex64>(m, n, full);
        ExpectFactors<lapack::Complex128>(m, n, full);
      }
    }
  }
}

TEST(LongSvdTest, IsTakenWhereOneCallTakesLong) {
  EXPECT_FALSE(OblongSvd<double>::Suits(1000, 100, false));
  EXPECT_FALSE(LargeSvdValues<double>::Suits(1000, 100));
  for (const int64_t few : {2, 16, 100, 127}) {
    EXPECT_TRUE(OblongSvd<double>::Suits(100'000'000, few, false));
    EXPECT_TRUE(OblongSvd<double>::Suits(few, 100'000'000, false));
    EXPECT_TRUE(LargeSvdValues<double>::Suits(100'000'000, few));
    EXPECT_TRUE(PanelledGeqrf<double>::Suits(few, 100'000'000));
    // A matrix whose Q has as many columns as rows.
    EXPECT_TRUE(OblongSvd<double>::Suits(few, 50'000, true));
    EXPECT_TRUE(PanelledGeqrf<double>::Suits(50'000, few, 50'000));
  }
}

}  // namespace
}  // namespace tensord::cpu
