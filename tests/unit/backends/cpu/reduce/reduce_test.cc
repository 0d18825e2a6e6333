#include "backends/cpu/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/pool_of.h"

namespace tensord::cpu {
namespace {

struct ReduceCase {
  std::vector<int64_t> shape;
  std::vector<int64_t> axes;
};

std::string Describe(const ReduceCase& c) {
  return absl::StrCat("[", absl::StrJoin(c.shape, ","), "] over {", absl::StrJoin(c.axes, ","), "}");
}

int64_t Product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

// For each element, in memory order, the result that it goes into.
std::vector<int64_t> ResultIndices(const ReduceCase& c) {
  const size_t rank = c.shape.size();
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t k = 0; k < rank; ++k) {
    if (std::find(c.axes.begin(), c.axes.end(), static_cast<int64_t>(k)) != c.axes.end()) continue;
    strides[k] = stride;
    stride *= c.shape[k];
  }
  std::vector<int64_t> indices(static_cast<size_t>(Product(c.shape)));
  for (size_t e = 0; e < indices.size(); ++e) {
    int64_t rest = static_cast<int64_t>(e);
    for (size_t k = 0; k < rank; ++k) {
      indices[e] += rest % c.shape[k] * strides[k];
      rest /= c.shape[k];
    }
  }
  return indices;
}

int64_t NumResults(const ReduceCase& c) {
  int64_t n = 1;
  for (size_t k = 0; k < c.shape.size(); ++k) {
    if (std::find(c.axes.begin(), c.axes.end(), static_cast<int64_t>(k)) == c.axes.end()) n *= c.shape[k];
  }
  return n;
}

template <typename T>
std::vector<T> Reduce(ReduceOp op, const ReduceCase& c, const std::vector<T>& x, int threads) {
  const Reduction reduction(op, kDTypeOf<T>, c.shape, c.axes);
  std::vector<char> storage(static_cast<size_t>(reduction.scratch_bytes()) + 64);
  char* scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  std::vector<T> result(static_cast<size_t>(NumResults(c)));
  reduction.Run(x.data(), result.data(), scratch, PoolOf(threads));
  return result;
}

// Reduces with 1, 2 and 4 threads, which must give the same bits.
template <typename T>
std::vector<T> ReduceAnyThreads(ReduceOp op, const ReduceCase& c, const std::vector<T>& x) {
  const std::vector<T> result = Reduce(op, c, x, 1);
  for (int threads : {2, 4}) {
    const std::vector<T> other = Reduce(op, c, x, threads);
    EXPECT_TRUE(result.empty() || std::memcmp(result.data(), other.data(), result.size() * sizeof(T)) == 0)
        << Describe(c) << " with " << threads << " threads";
  }
  return result;
}

template <typename T, typename Combine>
std::vector<T> Naive(const ReduceCase& c, const std::vector<T>& x, T identity, Combine combine) {
  std::vector<T> result(static_cast<size_t>(NumResults(c)), identity);
  const std::vector<int64_t> indices = ResultIndices(c);
  for (size_t e = 0; e < x.size(); ++e) {
    T& r = result[static_cast<size_t>(indices[e])];
    r = combine(r, x[e]);
  }
  return result;
}

// Every order of kept and reduced axes, short and long ones, whole and nothing.
std::vector<ReduceCase> Cases() {
  std::vector<ReduceCase> cases = {{{}, {}},
                                   {{5}, {}},
                                   {{5}, {0}},
                                   {{0}, {0}},
                                   {{0, 3}, {0}},
                                   {{3, 0}, {0}},
                                   {{3, 0, 2}, {1}},
                                   {{1, 1, 1}, {1}},
                                   {{100003}, {0}},
                                   {{400000}, {0}},
                                   {{300, 257}, {0}},
                                   {{300, 257}, {1}},
                                   {{20, 3000}, {0}},
                                   {{20, 3000}, {1}},
                                   {{3, 20000}, {1}},
                                   {{3, 20000}, {0}},
                                   {{1, 7, 5000}, {0, 2}},
                                   {{7, 5, 2000}, {1}},
                                   {{7, 5, 2000}, {0, 2}},
                                   {{70, 5, 200}, {1}},
                                   {{70, 5, 200}, {0, 2}},
                                   {{300, 40, 20}, {0, 2}},
                                   {{40, 300, 20}, {1}},
                                   {{2, 3, 2, 5, 2, 7, 2, 11}, {0, 2, 4, 6}},
                                   {{2, 3, 2, 5, 2, 7, 2, 11}, {1, 3, 5, 7}},
                                   {{600, 3, 4, 50}, {0, 2}},
                                   {{513, 1030}, {1}},
                                   {{16, 100000}, {1}}};
  std::mt19937 random(11);
  for (int round = 0; round < 150; ++round) {
    ReduceCase c;
    const size_t rank = random() % 7;
    for (size_t k = 0; k < rank; ++k) {
      c.shape.push_back(1 + static_cast<int64_t>(random() % (random() % 3 == 0 ? 40 : 6)));
      if (random() % 2 == 0) c.axes.push_back(static_cast<int64_t>(k));
    }
    std::shuffle(c.axes.begin(), c.axes.end(), random);
    cases.push_back(c);
  }
  return cases;
}

template <typename T>
std::vector<T> RandomIntegers(size_t count, int64_t low, int64_t high) {
  std::mt19937_64 random(5);
  std::uniform_int_distribution<int64_t> distribution(low, high);
  std::vector<T> values(count);
  for (T& v : values) v = static_cast<T>(distribution(random));
  return values;
}

std::vector<double> RandomReals(size_t count) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> distribution(-1, 1);
  std::vector<double> values(count);
  for (double& v : values) v = distribution(random);
  return values;
}

template <typename T>
class ReduceIntegerTest : public testing::Test {};
using IntegerTypes = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(ReduceIntegerTest, IntegerTypes);

TYPED_TEST(ReduceIntegerTest, EqualsNaiveLoop) {
  using T = TypeParam;
  using U = std::make_unsigned_t<T>;
  using Limits = std::numeric_limits<T>;
  for (const ReduceCase& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    const auto x = RandomIntegers<T>(static_cast<size_t>(Product(c.shape)), Limits::min(), Limits::max());
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kSum, c, x),
              Naive(c, x, T(0), [](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); }));
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kProduct, c, x),
              Naive(c, x, T(1), [](T a, T b) { return static_cast<T>(static_cast<U>(a) * static_cast<U>(b)); }));
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kMax, c, x),
              Naive(c, x, Limits::min(), [](T a, T b) { return std::max(a, b); }));
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kMin, c, x),
              Naive(c, x, Limits::max(), [](T a, T b) { return std::min(a, b); }));
  }
}

TEST(ReduceTest, BoolEqualsNaiveLoop) {
  for (const ReduceCase& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    for (bool common : {false, true}) {
      // Rare exceptions, so that neither result is the same everywhere.
      const auto draws = RandomIntegers<int64_t>(static_cast<size_t>(Product(c.shape)), 0, 30);
      std::vector<Bool> x(draws.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = Bool((draws[i] == 0) != common);
      const auto any = Naive(c, x, Bool(false), [](Bool a, Bool b) { return Bool(a.value || b.value); });
      const auto all = Naive(c, x, Bool(true), [](Bool a, Bool b) { return Bool(a.value && b.value); });
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kOr}) EXPECT_EQ(ReduceAnyThreads(op, c, x), any);
      for (ReduceOp op : {ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kAnd}) {
        EXPECT_EQ(ReduceAnyThreads(op, c, x), all);
      }
    }
  }
}

// Sums of terms in (-1, 1): the error is a small multiple of the epsilon times the sum of the magnitudes.
template <typename T, typename ToLong>
void CheckSum(const ReduceCase& c, const std::vector<T>& x, ToLong to_long, long double epsilon) {
  const std::vector<T> sums = ReduceAnyThreads(ReduceOp::kSum, c, x);
  const std::vector<int64_t> indices = ResultIndices(c);
  std::vector<long double> exact(sums.size(), 0), magnitude(sums.size(), 0);
  for (size_t e = 0; e < x.size(); ++e) {
    exact[static_cast<size_t>(indices[e])] += to_long(x[e]);
    magnitude[static_cast<size_t>(indices[e])] += std::abs(to_long(x[e]));
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(to_long(sums[i]), exact[i], 4 * epsilon * magnitude[i] + std::abs(exact[i]) * epsilon)
        << Describe(c) << " result " << i;
  }
}

TEST(ReduceTest, RealSumsAreAccurate) {
  for (const ReduceCase& c : Cases()) {
    const std::vector<double> x = RandomReals(static_cast<size_t>(Product(c.shape)));
    CheckSum(
        c, x, [](double v) -> long double { return v; }, 0x1p-52L);
    const std::vector<float> f(x.begin(), x.end());
    CheckSum(
        c, f, [](float v) -> long double { return v; }, 0x1p-23L);
  }
}

TEST(ReduceTest, HalfSumsRoundOnce) {
  for (const ReduceCase& c : Cases()) {
    const std::vector<double> x = RandomReals(static_cast<size_t>(Product(c.shape)));
    const std::vector<Float16> f16(x.begin(), x.end());
    const std::vector<BFloat16> bf16(x.begin(), x.end());
    // Half an ulp of the result, which 4 * 2^-23 of the terms' magnitude (the F32 sum) adds to.
    const auto check = [&c](const auto& terms, long double half_ulp) {
      const auto sums = ReduceAnyThreads(ReduceOp::kSum, c, terms);
      const std::vector<int64_t> indices = ResultIndices(c);
      std::vector<long double> exact(sums.size(), 0), magnitude(sums.size(), 0);
      for (size_t e = 0; e < terms.size(); ++e) {
        exact[static_cast<size_t>(indices[e])] += static_cast<float>(terms[e]);
        magnitude[static_cast<size_t>(indices[e])] += std::abs(static_cast<float>(terms[e]));
      }
      for (size_t i = 0; i < sums.size(); ++i) {
        EXPECT_NEAR(static_cast<float>(sums[i]), exact[i],
                    1.01L * half_ulp * std::abs(exact[i]) + 0x1p-21L * magnitude[i] + 0x1p-25L)
            << Describe(c);
      }
    };
    check(f16, 0x1p-11L);
    check(bf16, 0x1p-8L);
  }
}

TEST(ReduceTest, ComplexEqualsNaiveLoop) {
  for (const ReduceCase& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    const size_t count = static_cast<size_t>(Product(c.shape));
    const auto re = RandomIntegers<int64_t>(count, -3, 3);
    std::vector<Complex128> x(count);
    for (size_t i = 0; i < count; ++i)
      x[i] = Complex128(static_cast<double>(re[i]), static_cast<double>(re[count - 1 - i]));
    const std::vector<Complex64> narrow(x.begin(), x.end());
    // Small integers: the sums are exact.
    const auto sum = [](auto a, auto b) { return a + b; };
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kSum, c, x), Naive(c, x, Complex128(0), sum));
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kSum, c, narrow), Naive(c, narrow, Complex64(0), sum));
    const double infinity = std::numeric_limits<double>::infinity();
    const auto greater = [](Complex128 a, Complex128 b) {
      return a.real() != b.real() ? a.real() > b.real() : a.imag() > b.imag();
    };
    EXPECT_EQ(ReduceAnyThreads(ReduceOp::kMax, c, x),
              Naive(c, x, Complex128(-infinity, -infinity),
                    [&](Complex128 a, Complex128 b) { return greater(a, b) ? a : b; }));
    EXPECT_EQ(
        ReduceAnyThreads(ReduceOp::kMin, c, x),
        Naive(c, x, Complex128(infinity, infinity), [&](Complex128 a, Complex128 b) { return greater(a, b) ? b : a; }));
  }
}

TEST(ReduceTest, ComplexProduct) {
  // Units of the Gaussian integers: products are exact.
  const ReduceCase c = {{5, 7, 11}, {0, 2}};
  const auto turns = RandomIntegers<int64_t>(5 * 7 * 11, 0, 3);
  const Complex64 units[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  std::vector<Complex64> x;
  for (int64_t turn : turns) x.push_back(units[turn]);
  EXPECT_EQ(ReduceAnyThreads(ReduceOp::kProduct, c, x),
            Naive(c, x, Complex64(1), [](Complex64 a, Complex64 b) { return a * b; }));
}

template <typename T>
void CheckRealExtrema() {
  for (const ReduceCase& c : Cases()) {
    SCOPED_TRACE(Describe(c));
    const std::vector<double> draws = RandomReals(static_cast<size_t>(Product(c.shape)));
    std::vector<T> x;
    for (double draw : draws) x.push_back(static_cast<T>(static_cast<float>(draw)));
    const T infinity = static_cast<T>(std::numeric_limits<float>::infinity());
    const T lowest = static_cast<T>(-std::numeric_limits<float>::infinity());
    const auto less = [](T a, T b) { return static_cast<float>(a) < static_cast<float>(b); };
    const auto maximum = [less](T a, T b) { return less(a, b) ? b : a; };
    const auto minimum = [less](T a, T b) { return less(b, a) ? b : a; };
    const auto same_bits = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
    };
    EXPECT_TRUE(same_bits(ReduceAnyThreads(ReduceOp::kMax, c, x), Naive(c, x, lowest, maximum)));
    EXPECT_TRUE(same_bits(ReduceAnyThreads(ReduceOp::kMin, c, x), Naive(c, x, infinity, minimum)));
  }
}

TEST(ReduceTest, ExtremaEqualNaiveLoop) {
  CheckRealExtrema<float>();
  CheckRealExtrema<double>();
  CheckRealExtrema<Float16>();
  CheckRealExtrema<BFloat16>();
}

TEST(ReduceTest, NanWinsWhereverItStands) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (size_t place : {size_t{0}, size_t{1}, size_t{499}, size_t{1000}, size_t{1002}}) {
    std::vector<double> x(1003, 1.0);
    x[place] = nan;
    for (ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kSum}) {
      EXPECT_TRUE(std::isnan(Reduce(op, {{1003}, {0}}, x, 1)[0]));
    }
    std::vector<Complex64> z(1003, Complex64(1, 1));
    z[place] = Complex64(0, static_cast<float>(nan));
    EXPECT_TRUE(std::isnan(Reduce(ReduceOp::kMax, {{1003}, {0}}, z, 1)[0].imag()));
  }
}

TEST(ReduceTest, PositiveZeroIsAboveNegativeZero) {
  std::vector<float> x(77, -0.0f);
  EXPECT_TRUE(std::signbit(Reduce(ReduceOp::kMax, {{77}, {0}}, x, 1)[0]));
  x[40] = 0.0f;
  EXPECT_FALSE(std::signbit(Reduce(ReduceOp::kMax, {{77}, {0}}, x, 1)[0]));
  EXPECT_TRUE(std::signbit(Reduce(ReduceOp::kMin, {{77}, {0}}, x, 1)[0]));
}

TEST(ReduceTest, NoElementGivesTheIdentity) {
  const ReduceCase c = {{3, 0}, {1}};
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Reduce<float>(ReduceOp::kSum, c, {}, 1), std::vector<float>(3, 0));
  EXPECT_EQ(Reduce<float>(ReduceOp::kProduct, c, {}, 1), std::vector<float>(3, 1));
  EXPECT_EQ(Reduce<float>(ReduceOp::kMax, c, {}, 1), std::vector<float>(3, -infinity));
  EXPECT_EQ(Reduce<float>(ReduceOp::kMin, c, {}, 1), std::vector<float>(3, infinity));
  EXPECT_EQ(Reduce<int32_t>(ReduceOp::kMax, c, {}, 1), std::vector<int32_t>(3, INT32_MIN));
  EXPECT_EQ(Reduce<Bool>(ReduceOp::kMin, c, {}, 1), std::vector<Bool>(3, Bool(true)));
  EXPECT_EQ(Reduce<Bool>(ReduceOp::kOr, c, {}, 1), std::vector<Bool>(3, Bool(false)));
  EXPECT_EQ(static_cast<float>(Reduce<Float16>(ReduceOp::kMax, c, {}, 1)[2]), -infinity);
}

}  // namespace
}  // namespace tensord::cpu
