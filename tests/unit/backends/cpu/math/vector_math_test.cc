#include "backends/cpu/math/vector_math.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testlib/numbers/exact_math.h"
#include "tests/testlib/numbers/math_arguments.h"
#include "tests/unit/backends/cpu/instruction_sets.h"

namespace tensord::cpu {
namespace {

constexpr double kMaxUlp = 4;

template <typename T>
struct Function {
  CoreOp op;
  typename VectorMath<T>::Unary VectorMath<T>::*unary;
  typename VectorMath<T>::Binary VectorMath<T>::*binary;

  void Call(const T* x, const T* z, T* y, int64_t n) const {
    binary != nullptr ? (GetVectorMath<T>().*binary)(x, z, y, n) : (GetVectorMath<T>().*unary)(x, y, n);
  }
  const char* name() const { return Def(op).name.data(); }
};

template <typename T>
std::vector<Function<T>> Functions() {
  using M = VectorMath<T>;
  return {
      {CoreOp::kExp, &M::exp, nullptr},
      {CoreOp::kExpm1, &M::expm1, nullptr},
      {CoreOp::kLog, &M::log, nullptr},
      {CoreOp::kLog1p, &M::log1p, nullptr},
      {CoreOp::kLogistic, &M::logistic, nullptr},
      {CoreOp::kTanh, &M::tanh, nullptr},
      {CoreOp::kSin, &M::sin, nullptr},
      {CoreOp::kCos, &M::cos, nullptr},
      {CoreOp::kTan, &M::tan, nullptr},
      {CoreOp::kSqrt, &M::sqrt, nullptr},
      {CoreOp::kRsqrt, &M::rsqrt, nullptr},
      {CoreOp::kErf, &M::erf, nullptr},
      {CoreOp::kCbrt, &M::cbrt, nullptr},
      {CoreOp::kPow, nullptr, &M::pow},
      {CoreOp::kSinh, &M::sinh, nullptr},
      {CoreOp::kCosh, &M::cosh, nullptr},
      {CoreOp::kAsin, &M::asin, nullptr},
      {CoreOp::kAcos, &M::acos, nullptr},
      {CoreOp::kAtan, &M::atan, nullptr},
      {CoreOp::kAsinh, &M::asinh, nullptr},
      {CoreOp::kAcosh, &M::acosh, nullptr},
      {CoreOp::kAtanh, &M::atanh, nullptr},
      {CoreOp::kLog2, &M::log2, nullptr},
      {CoreOp::kExp2, &M::exp2, nullptr},
      {CoreOp::kLog10, &M::log10, nullptr},
      {CoreOp::kAtan2, nullptr, &M::atan2},
      {CoreOp::kMaximum, nullptr, &M::maximum},
      {CoreOp::kMinimum, nullptr, &M::minimum},
      {CoreOp::kRemainder, nullptr, &M::remainder},
  };
}

template <typename T>
class VectorMathTest : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(VectorMathTest, Floats);

// tests/conformance/accuracy_test.cc measures this with the instruction set of the machine, this test with each.
TYPED_TEST(VectorMathTest, IsAccurateAndExactAtTheEdges) {
  using T = TypeParam;
  using Exact = std::conditional_t<std::is_same_v<T, float>, double, exact::Wide>;
  constexpr int64_t kRandomArguments = std::is_same_v<T, float> ? 60000 : 15000;
  struct Expected {
    MathArguments<T> arguments;
    std::vector<Exact> results;
  };
  std::vector<Expected> expected;
  for (const Function<T>& f : Functions<T>()) {
    Expected e{.arguments = RealMathArguments<T>(f.op, kRandomArguments, 29)};
    e.arguments.y.resize(e.arguments.x.size());
    const ExactReal<Exact> meaning = ExactRealOf<Exact>(f.op);
    for (size_t i = 0; i < e.arguments.x.size(); ++i) {
      e.results.push_back(meaning(e.arguments.x[i], e.arguments.y[i]));
    }
    expected.push_back(std::move(e));
  }
  ForEachInstructionSet([&](const char* target) {
    std::printf("  %-8s %-5s max ulp:", target, sizeof(T) == 4 ? "f32" : "f64");
    const std::vector<Function<T>> functions = Functions<T>();
    for (size_t k = 0; k < functions.size(); ++k) {
      const std::vector<T>& a = expected[k].arguments.x;
      const std::vector<T>& b = expected[k].arguments.y;
      std::vector<T> y(a.size());
      functions[k].Call(a.data(), b.data(), y.data(), static_cast<int64_t>(a.size()));
      double worst = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        const Exact want = expected[k].results[i];
        const double error = UlpError<Exact>(y[i], want, FormatOf(kDTypeOf<T>));
        ASSERT_FALSE(std::isnan(error)) << functions[k].name() << "(" << a[i] << ", " << b[i] << ") = " << y[i]
                                        << " instead of " << static_cast<double>(want);
        ASSERT_LE(error, kMaxUlp) << functions[k].name() << "(" << a[i] << ", " << b[i] << ") = " << y[i]
                                  << " instead of " << static_cast<double>(want);
        worst = std::max(worst, error);
      }
      std::printf(" %s %.2f", functions[k].name(), worst);
    }
    std::printf("\n");
  });
}

// Powers of ten are rounded, but stay nearer to a whole logarithm than to any other number.
TYPED_TEST(VectorMathTest, LogarithmsOfPowersAreWholeAndPowersOfTwoExact) {
  using T = TypeParam;
  using L = std::numeric_limits<T>;
  std::vector<T> exponents_of_two, powers_of_two, exponents_of_ten, powers_of_ten;
  for (int n = L::min_exponent - L::digits; n < L::max_exponent; ++n) {
    exponents_of_two.push_back(static_cast<T>(n));
    powers_of_two.push_back(std::ldexp(T(1), n));
  }
  for (int n = L::min_exponent10; n <= L::max_exponent10; ++n) {
    exponents_of_ten.push_back(static_cast<T>(n));
    powers_of_ten.push_back(static_cast<T>(exact::Pow(exact::Wide(10), exact::Wide(n))));
  }
  const auto results = [](auto function, const std::vector<T>& x) {
    std::vector<T> y(x.size());
    function(x.data(), y.data(), static_cast<int64_t>(x.size()));
    return y;
  };
  ForEachInstructionSet([&](const char*) {
    EXPECT_EQ(results(GetVectorMath<T>().log2, powers_of_two), exponents_of_two);
    EXPECT_EQ(results(GetVectorMath<T>().log10, powers_of_ten), exponents_of_ten);
    EXPECT_EQ(results(GetVectorMath<T>().exp2, exponents_of_two), powers_of_two);
  });
}

TYPED_TEST(VectorMathTest, BitsDependOnTheElementAlone) {
  using T = TypeParam;
  ForEachInstructionSet([](const char*) {
    for (const Function<T>& f : Functions<T>()) {
      // Edges, huge and ordinary arguments side by side: neighbours take other ways through the code.
      MathArguments<T> arguments = RealMathArguments<T>(f.op, 700, 5);
      const std::vector<T>& a = arguments.x;
      std::vector<T>& b = arguments.y;
      b.resize(a.size());
      const size_t n = a.size();
      std::vector<T> together(a.size());
      f.Call(a.data(), b.data(), together.data(), static_cast<int64_t>(n));
      for (size_t i = 0; i < a.size(); ++i) {
        T alone;
        f.Call(&a[i], &b[i], &alone, 1);
        ASSERT_EQ(std::memcmp(&alone, &together[i], sizeof(T)), 0) << f.name() << "(" << a[i] << ", " << b[i] << ")";
      }
      // In place, from an odd place of the array.
      std::vector<T> in_place = a;
      f.Call(in_place.data() + 3, b.data() + 3, in_place.data() + 3, static_cast<int64_t>(n) - 7);
      ASSERT_EQ(std::memcmp(in_place.data() + 3, together.data() + 3, (n - 7) * sizeof(T)), 0) << f.name();
      ASSERT_EQ(std::memcmp(in_place.data(), a.data(), 3 * sizeof(T)), 0) << f.name();
      ASSERT_EQ(std::memcmp(in_place.data() + n - 4, a.data() + n - 4, 4 * sizeof(T)), 0) << f.name();
    }
  });
}

TYPED_TEST(VectorMathTest, NoElementsTouchNothing) {
  using T = TypeParam;
  T untouched = 7;
  for (const Function<T>& f : Functions<T>()) {
    f.Call(nullptr, nullptr, &untouched, 0);
  }
  EXPECT_EQ(untouched, 7);
}

}  // namespace
}  // namespace tensord::cpu
