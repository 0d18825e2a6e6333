#include "backends/cpu/vector_math.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

constexpr double kMaxUlp = 4;
constexpr int64_t kRandomInputs = 60000;

// What results are compared with: twice the precision for float, x87's 64 bits of mantissa for double.
template <typename T>
using Exact = std::conditional_t<std::is_same_v<T, float>, double, long double>;

template <typename T>
struct Function {
  const char* name;
  typename VectorMath<T>::Unary VectorMath<T>::*unary;
  typename VectorMath<T>::Binary VectorMath<T>::*binary;
  Exact<T> (*exact)(Exact<T>, Exact<T>);
  double range;  // arguments of interest besides all of them: [-range, range]
};

template <typename E>
E ExactLogistic(E x) {
  const E e = std::exp(-std::abs(x));
  return (x < 0 ? e : E(1)) / (1 + e);
}

template <typename E>
E ExactMaximum(E x, E y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<E>::quiet_NaN();
  if (x == 0 && y == 0) return std::signbit(x) ? y : x;
  return std::max(x, y);
}

#define TENSORD_EXACT(expr) [](Exact<T> x, Exact<T>) -> Exact<T> { return expr; }
#define TENSORD_EXACT2(expr) [](Exact<T> x, Exact<T> y) -> Exact<T> { return expr; }
template <typename T>
std::vector<Function<T>> Functions() {
  using M = VectorMath<T>;
  const bool f32 = std::is_same_v<T, float>;
  return {
      {"exp", &M::exp, nullptr, TENSORD_EXACT(std::exp(x)), f32 ? 104.0 : 746.0},
      {"expm1", &M::expm1, nullptr, TENSORD_EXACT(std::expm1(x)), 2},
      {"log", &M::log, nullptr, TENSORD_EXACT(std::log(x)), 2},
      {"log1p", &M::log1p, nullptr, TENSORD_EXACT(std::log1p(x)), 1},
      {"logistic", &M::logistic, nullptr, TENSORD_EXACT(ExactLogistic(x)), f32 ? 104.0 : 746.0},
      {"tanh", &M::tanh, nullptr, TENSORD_EXACT(std::tanh(x)), 10},
      {"sin", &M::sin, nullptr, TENSORD_EXACT(std::sin(x)), f32 ? 2e5 : 2e9},
      {"cos", &M::cos, nullptr, TENSORD_EXACT(std::cos(x)), f32 ? 2e5 : 2e9},
      {"tan", &M::tan, nullptr, TENSORD_EXACT(std::tan(x)), 100},
      {"sqrt", &M::sqrt, nullptr, TENSORD_EXACT(std::sqrt(x)), 4},
      {"rsqrt", &M::rsqrt, nullptr, TENSORD_EXACT(1 / std::sqrt(x)), 4},
      {"erf", &M::erf, nullptr, TENSORD_EXACT(std::erf(x)), 6},
      {"cbrt", &M::cbrt, nullptr, TENSORD_EXACT(std::cbrt(x)), 8},
      {"pow", nullptr, &M::pow, TENSORD_EXACT2(std::pow(x, y)), 20},
      {"atan2", nullptr, &M::atan2, TENSORD_EXACT2(std::atan2(x, y)), 3},
      {"maximum", nullptr, &M::maximum, TENSORD_EXACT2(ExactMaximum(x, y)), 3},
      {"minimum", nullptr, &M::minimum, TENSORD_EXACT2(-ExactMaximum(-x, -y)), 3},
      {"remainder", nullptr, &M::remainder, TENSORD_EXACT2(std::fmod(x, y)), 1e4},
  };
}
#undef TENSORD_EXACT
#undef TENSORD_EXACT2

// Distance in units of the last place of the exact value; infinity counts as the next power of two. NaN where only one
// of the two is NaN, or a zero has the wrong sign.
template <typename T>
double UlpError(T value, Exact<T> exact) {
  using Limits = std::numeric_limits<T>;
  constexpr double kWrong = std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(exact) || std::isnan(value)) return std::isnan(exact) && std::isnan(value) ? 0 : kWrong;
  if (exact == 0) return value == 0 && std::signbit(value) == std::signbit(exact) ? 0 : kWrong;
  const Exact<T> top = std::ldexp(Exact<T>(1), Limits::max_exponent);
  const auto finite = [top](Exact<T> x) { return std::abs(x) > top ? std::copysign(top, x) : x; };
  int exponent;
  std::frexp(exact, &exponent);
  exponent = std::min(std::max(exponent, Limits::min_exponent), Limits::max_exponent);
  const Exact<T> ulp = std::ldexp(Exact<T>(1), exponent - Limits::digits);
  return static_cast<double>(std::abs(finite(value) - finite(exact)) / ulp);
}

template <typename T>
std::vector<T> Edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> edges = {T(0),     L::denorm_min(), L::min() / 2, L::min(),      std::nextafter(L::min(), T(0)),
                          L::max(), L::infinity(),   L::epsilon(), L::quiet_NaN()};
  for (double x : {0.5,
                   1.0,
                   1.5,
                   2.0,
                   3.0,
                   10.0,
                   20.0,
                   0.34657359027997264,
                   0.69314718055994531,
                   0.70710678118654752,
                   1.4142135623730951,
                   1.5707963267948966,
                   3.1415926535897932,
                   16.0,
                   17.0,
                   18.0,
                   88.0,
                   88.72283905206835,
                   89.0,
                   87.33654475,
                   103.97208,
                   104.0,
                   105.0,
                   708.39,
                   709.78271289338397,
                   710.0,
                   744.44,
                   745.13321910194122,
                   746.0,
                   1e3,
                   1e5,
                   131072.0,
                   1e9,
                   1073741824.0,
                   1e10,
                   1e20,
                   1e30}) {
    const T t = static_cast<T>(x);
    edges.insert(edges.end(), {t, std::nextafter(t, T(0)), std::nextafter(t, L::infinity())});
  }
  const size_t positive = edges.size();
  for (size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  return edges;
}

template <typename T>
std::vector<T> RandomInputs(std::mt19937_64& random, int64_t count, double range) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::uniform_real_distribution<double> uniform(-range, range);
  std::uniform_real_distribution<double> exponent(-40, 40);
  std::vector<T> x;
  for (int64_t i = 0; i < count; ++i) {
    switch (i % 3) {
      case 0:
        x.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
        break;
      case 1:
        x.push_back(static_cast<T>(uniform(random)));
        break;
      default:
        x.push_back(static_cast<T>(std::copysign(std::exp2(exponent(random)), uniform(random))));
    }
  }
  return x;
}

template <typename T>
class VectorMathTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMathTest, Floats);

TYPED_TEST(VectorMathTest, IsAccurateAndExactAtTheEdges) {
  using T = TypeParam;
  ForEachInstructionSet([](const char* target) {
    const VectorMath<T>& math = GetVectorMath<T>();
    std::printf("  %-8s %-5s max ulp:", target, sizeof(T) == 4 ? "f32" : "f64");
    for (const Function<T>& f : Functions<T>()) {
      std::mt19937_64 random(17);
      std::vector<T> a = RandomInputs<T>(random, kRandomInputs, f.range), b;
      const std::vector<T> edges = Edges<T>();
      if (f.binary != nullptr) {
        b = RandomInputs<T>(random, kRandomInputs, f.range);
        // Powers that just overflow or underflow: the exponent is chosen for the result.
        for (size_t i = 0; i < b.size(); i += 4) {
          b[i] = static_cast<T>(std::uniform_real_distribution<double>(0.99, 1.04)(random) * (i % 8 == 0 ? 1 : -1) *
                                std::numeric_limits<T>::max_exponent / std::log2(std::abs(static_cast<double>(a[i]))));
        }
        // Quotients at and beside integers.
        for (size_t i = 1; i < b.size(); i += 4) b[i] = a[i] / static_cast<T>(1 + random() % 1000);
        for (T x : edges) {
          a.insert(a.end(), edges.size(), x);
          b.insert(b.end(), edges.begin(), edges.end());
        }
      } else {
        a.insert(a.end(), edges.begin(), edges.end());
        b.resize(a.size());
      }
      std::vector<T> y(a.size());
      const int64_t n = static_cast<int64_t>(a.size());
      if (f.binary != nullptr) {
        (math.*f.binary)(a.data(), b.data(), y.data(), n);
      } else {
        (math.*f.unary)(a.data(), y.data(), n);
      }
      double worst = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        const double error = UlpError(y[i], f.exact(a[i], b[i]));
        ASSERT_FALSE(std::isnan(error)) << f.name << "(" << a[i] << ", " << b[i] << ") = " << y[i] << " instead of "
                                        << f.exact(a[i], b[i]);
        ASSERT_LE(error, kMaxUlp) << f.name << "(" << a[i] << ", " << b[i] << ") = " << y[i] << " instead of "
                                  << f.exact(a[i], b[i]);
        worst = std::max(worst, error);
      }
      std::printf(" %s %.2f", f.name, worst);
    }
    std::printf("\n");
  });
}

TYPED_TEST(VectorMathTest, BitsDependOnTheElementAlone) {
  using T = TypeParam;
  ForEachInstructionSet([](const char*) {
    const VectorMath<T>& math = GetVectorMath<T>();
    for (const Function<T>& f : Functions<T>()) {
      std::mt19937_64 random(5);
      // Huge and ordinary arguments side by side: neighbours take other ways through the code.
      const std::vector<T> a = RandomInputs<T>(random, 97, f.range);
      const std::vector<T> b = RandomInputs<T>(random, 97, f.range);
      const auto call = [&](const T* x, const T* z, T* y, int64_t n) {
        f.binary != nullptr ? (math.*f.binary)(x, z, y, n) : (math.*f.unary)(x, y, n);
      };
      std::vector<T> together(a.size());
      call(a.data(), b.data(), together.data(), static_cast<int64_t>(a.size()));
      for (size_t i = 0; i < a.size(); ++i) {
        T alone;
        call(&a[i], &b[i], &alone, 1);
        ASSERT_EQ(std::memcmp(&alone, &together[i], sizeof(T)), 0) << f.name << "(" << a[i] << ", " << b[i] << ")";
      }
      // In place, from an odd place of the array.
      std::vector<T> in_place = a;
      call(in_place.data() + 3, b.data() + 3, in_place.data() + 3, 90);
      ASSERT_EQ(std::memcmp(in_place.data() + 3, together.data() + 3, 90 * sizeof(T)), 0) << f.name;
      ASSERT_EQ(std::memcmp(in_place.data(), a.data(), 3 * sizeof(T)), 0) << f.name;
      ASSERT_EQ(std::memcmp(in_place.data() + 93, a.data() + 93, 4 * sizeof(T)), 0) << f.name;
    }
  });
}

TYPED_TEST(VectorMathTest, NoElementsTouchNothing) {
  using T = TypeParam;
  T untouched = 7;
  for (const Function<T>& f : Functions<T>()) {
    if (f.unary != nullptr) (GetVectorMath<T>().*f.unary)(nullptr, &untouched, 0);
    if (f.binary != nullptr) (GetVectorMath<T>().*f.binary)(nullptr, nullptr, &untouched, 0);
  }
  EXPECT_EQ(untouched, 7);
}

}  // namespace
}  // namespace tensord::cpu
