#include "backends/cpu/linalg/lanes/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

// Factors are multiplied out and compared with what they are factors of, in long double.

namespace tensord::cpu {
namespace {

using Wide = std::complex<long double>;

template <typename T>
struct Element {
  using Real = T;
  static constexpr DType kDType = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  static T From(Wide x) { return static_cast<T>(x.real()); }
};
template <typename T>
struct Element<std::complex<T>> {
  using Real = T;
  static constexpr DType kDType = sizeof(T) == 4 ? DType::kC64 : DType::kC128;
  static std::complex<T> From(Wide x) { return {static_cast<T>(x.real()), static_cast<T>(x.imag())}; }
};

template <typename T>
using RealOf = typename Element<T>::Real;
template <typename T>
constexpr long double kEpsilon = std::numeric_limits<RealOf<T>>::epsilon();

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<Wide> entries;

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), entries(static_cast<size_t>(m * n)) {}
  Wide& operator()(int64_t i, int64_t j) { return entries[static_cast<size_t>(i + j * rows)]; }
  const Wide& operator()(int64_t i, int64_t j) const { return entries[static_cast<size_t>(i + j * rows)]; }

  long double Largest() const {
    long double most = 0;
    for (Wide x : entries) most = std::max(most, std::abs(x));
    return most;
  }
};

template <typename T>
Matrix Taken(const std::vector<T>& values, int64_t rows, int64_t columns, int64_t index) {
  Matrix matrix(rows, columns);
  for (size_t i = 0; i < matrix.entries.size(); ++i) {
    const T& value = values[static_cast<size_t>(index) * matrix.entries.size() + i];
    matrix.entries[i] = Wide(std::real(value), std::imag(value));
  }
  return matrix;
}

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; ++j) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t i = 0; i < a.rows; ++i) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}

Matrix Adjoint(const Matrix& a) {
  Matrix adjoint(a.columns, a.rows);
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) adjoint(j, i) = std::conj(a(i, j));
  }
  return adjoint;
}

Matrix Identity(int64_t n) {
  Matrix identity(n, n);
  for (int64_t i = 0; i < n; ++i) identity(i, i) = 1;
  return identity;
}

long double Distance(const Matrix& a, const Matrix& b) {
  Matrix difference = a;
  for (size_t i = 0; i < a.entries.size(); ++i) difference.entries[i] -= b.entries[i];
  return difference.Largest();
}

// Checks a matrix of the elements' precision, `allowed` times its epsilon.
template <typename T>
void ExpectUnitaryColumns(const Matrix& q, long double allowed) {
  EXPECT_LE(Distance(Product(Adjoint(q), q), Identity(q.columns)), allowed * kEpsilon<T>);
}

template <typename T>
void ExpectProduct(const Matrix& product, const Matrix& of, long double allowed) {
  const long double tiny = std::numeric_limits<RealOf<T>>::denorm_min();
  EXPECT_LE(Distance(product, of), allowed * (kEpsilon<T> * of.Largest() + tiny));
}

template <typename T>
std::vector<T> RandomElements(int64_t count, std::mt19937& random) {
  std::vector<T> values(static_cast<size_t>(count));
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (T& value : values) {
    const double real = uniform(random), imag = uniform(random);
    value = Element<T>::From({real, imag});
  }
  return values;
}

// Results of one call on the machine's scratch, which must be large enough.
template <typename T>
SmallMatrixFailure RunLoops(SmallMatrixOp op, SmallMatrixBatch batch) {
  const SmallMatrixLoops loops = GetSmallMatrixLoops(op, Element<T>::kDType);
  const size_t bytes = static_cast<size_t>(SmallMatrixScratchEntries(op, batch) * loops.entry_bytes);
  constexpr size_t kGuard = 256;
  std::vector<char> storage(bytes + kGuard + 64, 0x5a);
  char* const scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  const SmallMatrixFailure failure = loops.run(batch, scratch);
  EXPECT_EQ(std::string(scratch + bytes, kGuard), std::string(kGuard, 0x5a)) << "scratch is too small";
  return failure;
}

// Without a vector unit there are no loops.
template <typename Body>
void ForEachVectorSet(Body body) {
  ForEachInstructionSet([&](const char*) {
    if (GetSmallMatrixLoops(SmallMatrixOp::kSvd, DType::kF64).run != nullptr) body();
  });
}

template <typename T>
class SmallMatrixLoopsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (GetSmallMatrixLoops(SmallMatrixOp::kSvd, Element<T>::kDType).run == nullptr) GTEST_SKIP() << "no vectors here";
  }
};

using Elements = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(SmallMatrixLoopsTest, Elements);

struct Size {
  int64_t rows, columns, count;
};
constexpr Size kSizes[] = {{1, 1, 1},  {1, 1, 17},  {2, 2, 5},   {3, 3, 16}, {4, 4, 33},  {5, 5, 7},
                           {8, 8, 19}, {16, 16, 9}, {32, 32, 3}, {2, 1, 9},  {1, 3, 9},   {7, 3, 20},
                           {3, 7, 20}, {16, 4, 9},  {5, 16, 9},  {32, 9, 3}, {11, 32, 3}, {13, 13, 2}};

template <typename T>
struct SvdResult {
  std::vector<T> u, vh;
  std::vector<RealOf<T>> s, only_values;
  SmallMatrixFailure failure;
};

template <typename T>
SvdResult<T> RunSvd(const std::vector<T>& a, int64_t m, int64_t n, int64_t count, bool full) {
  const int64_t k = std::min(m, n);
  SvdResult<T> result;
  result.u.resize(static_cast<size_t>(m * (full ? m : k) * count));
  result.vh.resize(static_cast<size_t>((full ? n : k) * n * count));
  result.s.resize(static_cast<size_t>(k * count));
  result.only_values.resize(static_cast<size_t>(k * count));
  SmallMatrixBatch batch{.rows = m, .columns = n, .full = full, .count = count};
  batch.operands[0] = a.data();
  batch.results[0] = result.u.data(), batch.results[1] = result.s.data(), batch.results[2] = result.vh.data();
  result.failure = RunLoops<T>(SmallMatrixOp::kSvd, batch);
  batch.only_values = true;
  batch.results[0] = batch.results[2] = nullptr;
  batch.results[1] = result.only_values.data();
  RunLoops<T>(SmallMatrixOp::kSvd, batch);
  return result;
}

template <typename T>
void CheckSvd(const std::vector<T>& a, int64_t m, int64_t n, int64_t count, bool full) {
  SCOPED_TRACE(absl::StrCat(m, " x ", n, ", full ", full));
  const SvdResult<T> result = RunSvd(a, m, n, count, full);
  EXPECT_EQ(result.failure.matrix, -1);
  EXPECT_EQ(result.s, result.only_values);
  const int64_t k = std::min(m, n), u_columns = full ? m : k, v_rows = full ? n : k;
  for (int64_t b = 0; b < count; ++b) {
    SCOPED_TRACE(absl::StrCat("matrix ", b));
    const Matrix u = Taken(result.u, m, u_columns, b), vh = Taken(result.vh, v_rows, n, b);
    Matrix scaled(m, v_rows);
    for (int64_t j = 0; j < k; ++j) {
      const RealOf<T> s = result.s[static_cast<size_t>(b * k + j)];
      EXPECT_GE(s, 0);
      EXPECT_LE(s, result.s[static_cast<size_t>(b * k + std::max<int64_t>(0, j - 1))]);
      for (int64_t i = 0; i < m; ++i) scaled(i, j) = u(i, j) * Wide(s);
    }
    ExpectUnitaryColumns<T>(u, 80);
    ExpectUnitaryColumns<T>(Adjoint(vh), 80);
    ExpectProduct<T>(Product(scaled, vh), Taken(a, m, n, b), 60);
  }
}

TYPED_TEST(SmallMatrixLoopsTest, SvdMultipliesOut) {
  std::mt19937 random(1);
  ForEachVectorSet([&] {
    for (const Size& size : kSizes) {
      const auto a = RandomElements<TypeParam>(size.rows * size.columns * size.count, random);
      for (bool full : {false, true}) CheckSvd(a, size.rows, size.columns, size.count, full);
    }
  });
}

// Zero, of low rank, of huge and of tiny entries, with equal values, and graded; all in one batch.
template <typename T>
std::vector<T> OddMatrices(int64_t m, int64_t n, int64_t* count, std::mt19937& random) {
  using R = RealOf<T>;
  const R huge = std::numeric_limits<R>::max() / 4, tiny = std::numeric_limits<R>::denorm_min();
  *count = 12;
  std::vector<T> values = RandomElements<T>(m * n * *count, random);
  for (int64_t b = 0; b < *count; ++b) {
    const auto at = [&](int64_t i, int64_t j) -> T& { return values[static_cast<size_t>(b * m * n + j * m + i)]; };
    const T first = at(0, 0);
    for (int64_t j = n - 1; j >= 0; --j) {
      for (int64_t i = m - 1; i >= 0; --i) {
        const R power = std::ldexp(R(1), static_cast<int>(-6 * (i + j)));
        if (b == 0) at(i, j) = T(0);
        if (b == 1) at(i, j) = at(i, 0);  // rank 1
        if (b == 2) at(i, j) *= huge / 2;
        if (b == 3) at(i, j) = tiny * T(R(1 + (3 * i + 5 * j) % 7));
        if (b == 4) at(i, j) = T(i == j ? R(1) : R(0));
        if (b == 5) at(i, j) = T(R(1));
        if (b == 6) at(i, j) *= power;
        if (b == 7) at(i, j) = i == m - 1 && j == n - 1 ? first : T(0);  // one entry
        if (b == 8) at(i, j) = T(R(1) / static_cast<R>(i + j + 1));      // Hilbert's
        if (b == 9) at(i, j) = (i + j) % 2 == 0 ? T(0) : T(R(-1));
        if (b == 10) at(i, j) = j == 0 ? T(-0.0) : at(i, j);
        if (b == 11) at(i, j) = T(i == j ? std::ldexp(R(1), static_cast<int>(-4 * i)) : R(0));
      }
    }
  }
  return values;
}

TYPED_TEST(SmallMatrixLoopsTest, SvdOfOddMatrices) {
  std::mt19937 random(2);
  ForEachVectorSet([&] {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1}, {2, 2}, {4, 4}, {7, 7}, {16, 16}, {9, 4}, {3, 8}}) {
      int64_t count = 0;
      const auto a = OddMatrices<TypeParam>(m, n, &count, random);
      for (bool full : {false, true}) CheckSvd(a, m, n, count, full);
    }
  });
}

// Values that lie far apart are all accurate where columns are scaled, or rows in descending order: of Q D they are
// those of D.
TEST(SmallMatrixSvdTest, SmallValuesAreAccurate) {
  constexpr int64_t kSize = 6;
  std::mt19937 random(3);
  std::vector<double> a = RandomElements<double>(kSize * kSize, random), q(a.size()), r(a.size());
  SmallMatrixBatch batch{.rows = kSize, .columns = kSize, .count = 1};
  batch.operands[0] = a.data();
  batch.results[0] = q.data(), batch.results[1] = r.data();
  if (GetSmallMatrixLoops(SmallMatrixOp::kQr, DType::kF64).run == nullptr) GTEST_SKIP() << "no vectors here";
  RunLoops<double>(SmallMatrixOp::kQr, batch);
  for (bool by_rows : {false, true}) {
    for (bool ascending : {false, true}) {
      if (by_rows && ascending) continue;
      std::vector<double> scaled = q;
      for (int64_t i = 0; i < kSize; ++i) {
        const double factor = std::pow(1e-12, static_cast<double>(ascending ? kSize - 1 - i : i));
        for (int64_t j = 0; j < kSize; ++j)
          scaled[static_cast<size_t>(by_rows ? j * kSize + i : i * kSize + j)] *= factor;
      }
      const SvdResult<double> result = RunSvd(scaled, kSize, kSize, 1, false);
      for (int64_t i = 0; i < kSize; ++i) {
        const double expected = std::pow(1e-12, static_cast<double>(i));
        EXPECT_NEAR(result.s[static_cast<size_t>(i)], expected, 1e-14 * expected) << by_rows << ascending;
      }
    }
  }
}

template <typename T>
std::vector<T> Hermitian(const std::vector<T>& a, int64_t n) {
  std::vector<T> hermitian = a;
  for (size_t at = 0; at < a.size(); at += static_cast<size_t>(n * n)) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = 0; i <= j; ++i) {
        const Wide below(std::real(a[at + static_cast<size_t>(i * n + j)]),
                         std::imag(a[at + static_cast<size_t>(i * n + j)]));
        hermitian[at + static_cast<size_t>(j * n + i)] =
            Element<T>::From(i == j ? Wide(below.real()) : std::conj(below));
      }
    }
  }
  return hermitian;
}

template <typename T>
void CheckEigh(std::vector<T> a, int64_t n, int64_t count) {
  SCOPED_TRACE(n);
  const std::vector<T> whole = Hermitian(a, n);
  std::vector<RealOf<T>> values(static_cast<size_t>(n * count)), only_values = values;
  std::vector<T> vectors(a.size());
  // The upper triangle is not read.
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t j = 1; j < n; ++j)
      a[static_cast<size_t>(b * n * n + j * n)] = T(std::numeric_limits<RealOf<T>>::quiet_NaN());
  }
  SmallMatrixBatch batch{.rows = n, .columns = n, .count = count};
  batch.operands[0] = a.data();
  batch.results[0] = values.data(), batch.results[1] = vectors.data();
  EXPECT_EQ(RunLoops<T>(SmallMatrixOp::kEigh, batch).matrix, -1);
  batch.only_values = true;
  batch.results[0] = only_values.data(), batch.results[1] = nullptr;
  RunLoops<T>(SmallMatrixOp::kEigh, batch);
  EXPECT_EQ(values, only_values);
  for (int64_t b = 0; b < count; ++b) {
    SCOPED_TRACE(absl::StrCat("matrix ", b));
    const Matrix v = Taken(vectors, n, n, b);
    Matrix scaled = v;
    for (int64_t j = 0; j < n; ++j) {
      const RealOf<T> value = values[static_cast<size_t>(b * n + j)];
      EXPECT_GE(value, values[static_cast<size_t>(b * n + std::max<int64_t>(0, j - 1))]);
      for (int64_t i = 0; i < n; ++i) scaled(i, j) *= Wide(value);
    }
    ExpectUnitaryColumns<T>(v, 80);
    ExpectProduct<T>(Product(scaled, Adjoint(v)), Taken(whole, n, n, b), 60);
  }
}

TYPED_TEST(SmallMatrixLoopsTest, EighMultipliesOut) {
  std::mt19937 random(4);
  ForEachVectorSet([&] {
    for (const Size& size : kSizes) {
      if (size.rows != size.columns) continue;
      CheckEigh(RandomElements<TypeParam>(size.rows * size.rows * size.count, random), size.rows, size.count);
      int64_t count = 0;
      CheckEigh(Hermitian(OddMatrices<TypeParam>(size.rows, size.rows, &count, random), size.rows), size.rows, count);
    }
  });
}

template <typename T>
void CheckQr(const std::vector<T>& a, int64_t m, int64_t n, int64_t count, bool full) {
  SCOPED_TRACE(absl::StrCat(m, " x ", n, ", full ", full));
  const int64_t side = full ? m : std::min(m, n);
  std::vector<T> q(static_cast<size_t>(m * side * count)), r(static_cast<size_t>(side * n * count));
  SmallMatrixBatch batch{.rows = m, .columns = n, .full = full, .count = count};
  batch.operands[0] = a.data();
  batch.results[0] = q.data(), batch.results[1] = r.data();
  EXPECT_EQ(RunLoops<T>(SmallMatrixOp::kQr, batch).matrix, -1);
  for (int64_t b = 0; b < count; ++b) {
    SCOPED_TRACE(absl::StrCat("matrix ", b));
    const Matrix each_q = Taken(q, m, side, b), each_r = Taken(r, side, n, b), each_a = Taken(a, m, n, b);
    ExpectUnitaryColumns<T>(each_q, 30);
    ExpectProduct<T>(Product(each_q, each_r), each_a, 60);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t i = j + 1; i < side; ++i) EXPECT_EQ(each_r(i, j), Wide(0));
      EXPECT_EQ(each_r(std::min(j, side - 1), std::min(j, side - 1)).imag(), 0);
    }
    // The first diagonal entry has the sign that is not A's, as LAPACK chooses it where there is something to
    // eliminate.
    if (m > 1 && std::abs(each_a(1, 0)) > 0 && each_a(0, 0).real() != 0) {
      EXPECT_LT(each_r(0, 0).real() * each_a(0, 0).real(), 0);
    }
  }
}

TYPED_TEST(SmallMatrixLoopsTest, QrMultipliesOut) {
  std::mt19937 random(5);
  ForEachVectorSet([&] {
    for (const Size& size : kSizes) {
      const auto a = RandomElements<TypeParam>(size.rows * size.columns * size.count, random);
      int64_t count = 0;
      const auto odd = OddMatrices<TypeParam>(size.rows, size.columns, &count, random);
      for (bool full : {false, true}) {
        CheckQr(a, size.rows, size.columns, size.count, full);
        CheckQr(odd, size.rows, size.columns, count, full);
      }
    }
  });
}

// There is nothing below the last row of a square matrix, and LAPACK leaves its sign.
TEST(SmallMatrixQrTest, LastDiagonalEntryKeepsItsSign) {
  if (GetSmallMatrixLoops(SmallMatrixOp::kQr, DType::kF64).run == nullptr) GTEST_SKIP() << "no vectors here";
  const std::vector<double> a = {-3};
  std::vector<double> q(1), r(1);
  SmallMatrixBatch batch{.rows = 1, .columns = 1, .count = 1};
  batch.operands[0] = a.data();
  batch.results[0] = q.data(), batch.results[1] = r.data();
  RunLoops<double>(SmallMatrixOp::kQr, batch);
  EXPECT_EQ(q[0], 1);
  EXPECT_EQ(r[0], -3);
}

TYPED_TEST(SmallMatrixLoopsTest, LuMultipliesOut) {
  std::mt19937 random(6);
  ForEachVectorSet([&] {
    for (const Size& size : kSizes) {
      const int64_t m = size.rows, n = size.columns, k = std::min(m, n);
      SCOPED_TRACE(absl::StrCat(m, " x ", n));
      for (bool is_odd : {false, true}) {
        int64_t count = size.count;
        auto a = RandomElements<TypeParam>(m * n * count, random);
        if (is_odd) a = OddMatrices<TypeParam>(m, n, &count, random);
        std::vector<TypeParam> p(static_cast<size_t>(m * m * count)), l(static_cast<size_t>(m * k * count)),
            u(static_cast<size_t>(k * n * count)), parity(static_cast<size_t>(count));
        SmallMatrixBatch batch{.rows = m, .columns = n, .count = count};
        batch.operands[0] = a.data();
        batch.results[0] = p.data(), batch.results[1] = l.data(), batch.results[2] = u.data();
        batch.results[3] = parity.data();
        EXPECT_EQ(RunLoops<TypeParam>(SmallMatrixOp::kLu, batch).matrix, -1);
        for (int64_t b = 0; b < count; ++b) {
          SCOPED_TRACE(absl::StrCat("matrix ", b));
          const Matrix each_p = Taken(p, m, m, b), each_l = Taken(l, m, k, b), each_u = Taken(u, k, n, b);
          ExpectProduct<TypeParam>(Product(each_l, each_u), Product(each_p, Taken(a, m, n, b)), 200);
          EXPECT_EQ(Distance(Product(each_p, Adjoint(each_p)), Identity(m)), 0);
          EXPECT_LE(each_l.Largest(), 1.5L);  // of complex numbers, |re| + |im| chooses
          std::vector<int64_t> order;
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < m; ++j) {
              if (each_p(i, j) == Wide(1)) order.push_back(j);
            }
          }
          int sign = 1;
          for (size_t i = 0; i < order.size(); ++i) {
            for (size_t j = 0; j < i; ++j) sign = order[j] > order[i] ? -sign : sign;
          }
          EXPECT_EQ(parity[static_cast<size_t>(b)], TypeParam(static_cast<RealOf<TypeParam>>(sign)));
          for (int64_t j = 0; j < k; ++j) {
            EXPECT_EQ(each_l(j, j), Wide(1));
            for (int64_t i = 0; i < j; ++i) EXPECT_EQ(each_l(i, j), Wide(0));
            for (int64_t i = j + 1; i < k; ++i) EXPECT_EQ(each_u(i, j), Wide(0));
          }
        }
      }
    }
  });
}

TYPED_TEST(SmallMatrixLoopsTest, SolveAndCholeskyMultiplyOut) {
  std::mt19937 random(7);
  ForEachVectorSet([&] {
    for (const Size& size : kSizes) {
      if (size.rows != size.columns) continue;
      const int64_t n = size.rows, r = 1 + n % 5, count = size.count;
      SCOPED_TRACE(n);
      auto a = RandomElements<TypeParam>(n * n * count, random);
      for (int64_t b = 0; b < count; ++b) {  // far from singular, with rows to exchange
        for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>((b * n + i) * n + (i + 1) % n)] += TypeParam(2 * n);
      }
      const auto sides = RandomElements<TypeParam>(n * r * count, random);
      std::vector<TypeParam> x(sides.size());
      SmallMatrixBatch batch{.rows = n, .columns = n, .right_sides = r, .count = count};
      batch.operands[0] = a.data(), batch.operands[1] = sides.data();
      batch.results[0] = x.data();
      EXPECT_EQ(RunLoops<TypeParam>(SmallMatrixOp::kSolve, batch).matrix, -1);
      for (int64_t b = 0; b < count; ++b) {
        ExpectProduct<TypeParam>(Product(Taken(a, n, n, b), Taken(x, n, r, b)), Taken(sides, n, r, b), 200);
      }
      auto definite = Hermitian(a, n);
      for (int64_t b = 0; b < count; ++b) {
        for (int64_t i = 0; i < n; ++i) definite[static_cast<size_t>((b * n + i) * n + i)] = TypeParam(8 * n);
      }
      auto lower_only = definite;
      for (int64_t b = 0; b < count; ++b) {
        if (n > 1)
          lower_only[static_cast<size_t>(b * n * n + n)] =
              TypeParam(std::numeric_limits<RealOf<TypeParam>>::quiet_NaN());
      }
      std::vector<TypeParam> l(a.size());
      batch.operands[0] = lower_only.data();
      batch.results[0] = l.data();
      EXPECT_EQ(RunLoops<TypeParam>(SmallMatrixOp::kCholesky, batch).matrix, -1);
      for (int64_t b = 0; b < count; ++b) {
        const Matrix each = Taken(l, n, n, b);
        ExpectProduct<TypeParam>(Product(each, Adjoint(each)), Taken(definite, n, n, b), 60);
        for (int64_t j = 1; j < n; ++j) EXPECT_EQ(each(0, j), Wide(0));
      }
    }
  });
}

TYPED_TEST(SmallMatrixLoopsTest, TriangularSolveMultipliesOut) {
  std::mt19937 random(8);
  ForEachVectorSet([&] {
    for (int variant = 0; variant < 48; ++variant) {
      const int64_t n = 1 + variant % 7, r = 1 + variant % 4, count = 3 + variant % 17;
      const bool left = variant % 2 != 0, lower = variant / 2 % 2 != 0, unit = variant / 4 % 2 != 0;
      const int op = variant / 8 % 3;
      SCOPED_TRACE(absl::StrCat("variant ", variant));
      auto a = RandomElements<TypeParam>(n * n * count, random);
      for (int64_t b = 0; b < count; ++b) {
        for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>((b * n + i) * n + i)] += TypeParam(4);
      }
      const auto sides = RandomElements<TypeParam>(n * r * count, random);
      std::vector<TypeParam> x(sides.size());
      SmallMatrixBatch batch{.rows = n,
                             .columns = n,
                             .right_sides = r,
                             .left_side = left,
                             .lower = lower,
                             .unit_diagonal = unit,
                             .transposed = op != 0,
                             .conjugated = op == 2,
                             .count = count};
      batch.operands[0] = a.data(), batch.operands[1] = sides.data();
      batch.results[0] = x.data();
      EXPECT_EQ(RunLoops<TypeParam>(SmallMatrixOp::kTriangularSolve, batch).matrix, -1);
      for (int64_t b = 0; b < count; ++b) {
        Matrix t = Taken(a, n, n, b);
        for (int64_t j = 0; j < n; ++j) {
          for (int64_t i = 0; i < n; ++i) {
            if (lower ? i < j : i > j) t(i, j) = 0;
            if (unit && i == j) t(i, j) = 1;
          }
        }
        if (op != 0) t = Adjoint(t);
        for (Wide& entry : t.entries) entry = op == 1 ? std::conj(entry) : entry;
        const Matrix each = left ? Taken(x, n, r, b) : Taken(x, r, n, b);
        const Matrix side = left ? Taken(sides, n, r, b) : Taken(sides, r, n, b);
        ExpectProduct<TypeParam>(left ? Product(t, each) : Product(each, t), side, 2000);
      }
    }
  });
}

// The first matrix that cannot be done is named, with LAPACK's info, and the others are done.
TYPED_TEST(SmallMatrixLoopsTest, FailuresNameTheirMatrix) {
  constexpr int64_t kSize = 4, kCount = 40;
  using T = TypeParam;
  std::vector<T> a(static_cast<size_t>(kSize * kSize * kCount), T(0)), b(static_cast<size_t>(kSize * kCount), T(1)),
      x = b, l = a;
  for (int64_t matrix = 0; matrix < kCount; ++matrix) {
    for (int64_t i = 0; i < kSize; ++i) a[static_cast<size_t>((matrix * kSize + i) * kSize + i)] = T(2);
  }
  const auto diagonal = [&](int64_t matrix, int64_t i) -> T& {
    return a[static_cast<size_t>((matrix * kSize + i) * kSize + i)];
  };
  diagonal(29, 0) = T(0);
  diagonal(23, 2) = T(0);
  SmallMatrixBatch batch{.rows = kSize, .columns = kSize, .right_sides = 1, .count = kCount};
  batch.operands[0] = a.data(), batch.operands[1] = b.data();
  batch.results[0] = x.data();
  SmallMatrixFailure failure = RunLoops<T>(SmallMatrixOp::kSolve, batch);
  EXPECT_EQ(failure.matrix, 23);
  EXPECT_EQ(failure.info, 3);
  EXPECT_EQ(x[0], T(0.5));
  EXPECT_EQ(x.back(), T(0.5));
  diagonal(11, 1) = T(std::numeric_limits<RealOf<T>>::quiet_NaN());
  batch.results[0] = l.data();
  failure = RunLoops<T>(SmallMatrixOp::kCholesky, batch);
  EXPECT_EQ(failure.matrix, 11);
  EXPECT_EQ(failure.info, 2);
  EXPECT_EQ(RunLoops<T>(SmallMatrixOp::kSolve, batch).matrix, 23) << "that of a NaN is NaN";
}

// Bits depend neither on the place in the batch nor on the neighbours, which may need more sweeps or fail.
TYPED_TEST(SmallMatrixLoopsTest, NeighboursDoNotMatter) {
  using T = TypeParam;
  using R = RealOf<T>;
  std::mt19937 random(9);
  ForEachVectorSet([&] {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{5, 5}, {8, 8}, {6, 3}, {3, 6}}) {
      int64_t count = 0;
      std::vector<T> a = OddMatrices<T>(m, n, &count, random);
      const std::vector<T> more = RandomElements<T>(m * n * 21, random);
      a.insert(a.end(), more.begin(), more.end());
      count += 21;
      a[static_cast<size_t>(14 * m * n)] = T(std::numeric_limits<R>::quiet_NaN());
      a[static_cast<size_t>(19 * m * n + 1)] = T(std::numeric_limits<R>::infinity());
      const size_t size = static_cast<size_t>(m * n);
      const auto check = [&](SmallMatrixOp op, absl::Span<const int64_t> entries, absl::Span<const bool> is_real) {
        SCOPED_TRACE(absl::StrCat("op ", static_cast<int>(op), ", ", m, " x ", n));
        SmallMatrixBatch batch{.rows = m, .columns = n, .right_sides = 0, .count = count};
        if (op == SmallMatrixOp::kSolve) batch.right_sides = n, batch.operands[1] = a.data();
        std::vector<std::vector<char>> together, alone;
        std::vector<size_t> bytes;
        for (size_t i = 0; i < entries.size(); ++i) {
          bytes.push_back(static_cast<size_t>(entries[i]) * (is_real[i] ? sizeof(R) : sizeof(T)));
          together.emplace_back(bytes[i] * static_cast<size_t>(count));
          alone.emplace_back(bytes[i]);
          batch.results[i] = together[i].data();
        }
        batch.operands[0] = a.data();
        RunLoops<T>(op, batch);
        batch.count = 1;
        for (size_t b = 0; b < static_cast<size_t>(count); ++b) {
          for (size_t i = 0; i < entries.size(); ++i) batch.results[i] = alone[i].data();
          batch.operands[0] = a.data() + b * size;
          if (op == SmallMatrixOp::kSolve) batch.operands[1] = a.data() + b * size;
          RunLoops<T>(op, batch);
          for (size_t i = 0; i < entries.size(); ++i) {
            EXPECT_EQ(std::memcmp(alone[i].data(), together[i].data() + b * bytes[i], bytes[i]), 0)
                << "result " << i << " of matrix " << b;
          }
        }
      };
      const int64_t k = std::min(m, n);
      check(SmallMatrixOp::kSvd, {m * k, k, k * n}, {false, true, false});
      check(SmallMatrixOp::kQr, {m * k, k * n}, {false, false});
      check(SmallMatrixOp::kLu, {m * m, m * k, k * n, 1}, {false, false, false, false});
      if (m != n) continue;
      check(SmallMatrixOp::kEigh, {n, n * n}, {true, false});
      check(SmallMatrixOp::kSolve, {n * n}, {false});
    }
  });
}

TYPED_TEST(SmallMatrixLoopsTest, NonFiniteMatricesHaveNoResults) {
  using T = TypeParam;
  using R = RealOf<T>;
  constexpr int64_t kSize = 5;
  for (R value : {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::infinity()}) {
    std::mt19937 random(10);
    std::vector<T> a = RandomElements<T>(kSize * kSize * 3, random), vectors(a.size()), r(a.size());
    a[static_cast<size_t>(kSize * kSize + 4)] = T(value);
    const SvdResult<T> svd = RunSvd(a, kSize, kSize, 3, false);
    std::vector<R> values(static_cast<size_t>(kSize * 3));
    SmallMatrixBatch batch{.rows = kSize, .columns = kSize, .count = 3};
    batch.operands[0] = a.data();
    batch.results[0] = values.data(), batch.results[1] = vectors.data();
    EXPECT_EQ(RunLoops<T>(SmallMatrixOp::kEigh, batch).matrix, -1);
    batch.results[0] = vectors.data(), batch.results[1] = r.data();
    EXPECT_EQ(RunLoops<T>(SmallMatrixOp::kQr, batch).matrix, -1);
    for (size_t i = 0; i < a.size(); ++i) {
      const bool is_nan = i / static_cast<size_t>(kSize * kSize) == 1;
      EXPECT_EQ(std::isnan(std::real(svd.u[i])), is_nan);
      EXPECT_EQ(std::isnan(std::real(svd.vh[i])), is_nan);
      EXPECT_EQ(std::isnan(std::real(vectors[i])), is_nan);
    }
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::isnan(svd.s[i]), i / kSize == 1);
      EXPECT_EQ(std::isnan(values[i]), i / kSize == 1);
    }
    EXPECT_EQ(svd.failure.matrix, -1);
  }
}

}  // namespace
}  // namespace tensord::cpu
