#include "engine/ops/scalar/scalar_math.h"

#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testlib/numbers/complex_limits.h"

namespace tensord::scalar {
namespace {

using LongComplex = std::complex<long double>;

template <typename T>
constexpr T kMin = std::numeric_limits<T>::min();
template <typename T>
constexpr T kMax = std::numeric_limits<T>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
class IntegerMath : public testing::Test {};
using Integers = testing::Types<int32_t, int64_t>;
TYPED_TEST_SUITE(IntegerMath, Integers);

TYPED_TEST(IntegerMath, WrapsAtTheEdges) {
  using T = TypeParam;
  EXPECT_EQ(Add()(kMax<T>, T(1)), kMin<T>);
  EXPECT_EQ(Subtract()(kMin<T>, T(1)), kMax<T>);
  EXPECT_EQ(Multiply()(kMin<T>, T(-1)), kMin<T>);
  EXPECT_EQ(Multiply()(kMax<T>, kMax<T>), T(1));
  EXPECT_EQ(Multiply()(kMin<T>, kMin<T>), T(0));
  EXPECT_EQ(Negate()(kMin<T>), kMin<T>);
  EXPECT_EQ(Abs()(kMin<T>), kMin<T>);
  EXPECT_EQ(Abs()(T(kMin<T> + 1)), kMax<T>);
  EXPECT_EQ(Sign()(kMin<T>), T(-1));
  EXPECT_EQ(Sign()(T(0)), T(0));
  EXPECT_EQ(Not()(kMin<T>), kMax<T>);
}

TYPED_TEST(IntegerMath, DivisionNeverTraps) {
  using T = TypeParam;
  EXPECT_EQ(Divide()(kMin<T>, T(-1)), kMin<T>);
  EXPECT_EQ(Remainder()(kMin<T>, T(-1)), T(0));
  for (T x : {kMin<T>, T(-7), T(0), T(7), kMax<T>}) {
    EXPECT_EQ(Divide()(x, T(0)), T(-1));
    EXPECT_EQ(Remainder()(x, T(0)), x);
  }
  EXPECT_EQ(Divide()(T(-7), T(2)), T(-3));
  EXPECT_EQ(Divide()(T(7), T(-2)), T(-3));
  EXPECT_EQ(Remainder()(T(-7), T(2)), T(-1));
  EXPECT_EQ(Remainder()(T(7), T(-2)), T(1));
  EXPECT_EQ(Divide()(kMin<T>, kMin<T>), T(1));
}

TYPED_TEST(IntegerMath, Powers) {
  using T = TypeParam;
  EXPECT_EQ(Pow()(T(0), T(0)), T(1));
  EXPECT_EQ(Pow()(T(3), T(13)), T(1594323));
  EXPECT_EQ(Pow()(T(-3), T(3)), T(-27));
  EXPECT_EQ(Pow()(T(2), T(sizeof(T) * 8 - 1)), kMin<T>);
  EXPECT_EQ(Pow()(T(2), T(sizeof(T) * 8)), T(0));
  EXPECT_EQ(Pow()(T(-1), kMax<T>), T(-1));
  EXPECT_EQ(Pow()(T(5), T(-1)), T(0));
  EXPECT_EQ(Pow()(T(1), kMin<T>), T(1));
  EXPECT_EQ(Pow()(T(-1), T(-3)), T(-1));
  EXPECT_EQ(Pow()(T(-1), T(-4)), T(1));
  EXPECT_EQ(Pow()(T(-1), kMin<T>), T(1));
  EXPECT_EQ(Pow()(T(-2), T(-1)), T(0));
  // Against repeated wrapping multiplication.
  for (T base = -9; base <= 9; ++base) {
    T product = 1;
    for (T exponent = 0; exponent < 70; ++exponent) {
      EXPECT_EQ(Pow()(base, exponent), product) << base << "^" << exponent;
      product = Multiply()(product, base);
    }
  }
}

TEST(Bool, AddIsOrAndMultiplyIsAnd) {
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      EXPECT_EQ(Add()(Bool(a), Bool(b)), Bool(a || b));
      EXPECT_EQ(Maximum()(Bool(a), Bool(b)), Bool(a || b));
      EXPECT_EQ(Multiply()(Bool(a), Bool(b)), Bool(a && b));
      EXPECT_EQ(Minimum()(Bool(a), Bool(b)), Bool(a && b));
      EXPECT_EQ(Xor()(Bool(a), Bool(b)), Bool(a != b));
      EXPECT_EQ(Less()(Bool(a), Bool(b)), Bool(!a && b));
    }
    EXPECT_EQ(Not()(Bool(a)), Bool(!a));
  }
}

template <typename T>
class FloatMath : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatMath, Floats);

TYPED_TEST(FloatMath, NanWinsAndZerosAreOrdered) {
  using T = TypeParam;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  for (T x : {T(-0.0), T(0), T(1), -inf, inf, nan}) {
    for (const auto& [a, b] : {std::pair(x, nan), std::pair(nan, x)}) {
      EXPECT_TRUE(std::isnan(Maximum()(a, b)));
      EXPECT_TRUE(std::isnan(Minimum()(a, b)));
    }
  }
  EXPECT_FALSE(std::signbit(Maximum()(T(-0.0), T(0))));
  EXPECT_FALSE(std::signbit(Maximum()(T(0), T(-0.0))));
  EXPECT_TRUE(std::signbit(Maximum()(T(-0.0), T(-0.0))));
  EXPECT_TRUE(std::signbit(Minimum()(T(-0.0), T(0))));
  EXPECT_TRUE(std::signbit(Minimum()(T(0), T(-0.0))));
  EXPECT_FALSE(std::signbit(Minimum()(T(0), T(0))));
  EXPECT_EQ(Maximum()(-inf, T(-5)), T(-5));
  EXPECT_EQ(Minimum()(inf, T(5)), T(5));
}

TYPED_TEST(FloatMath, SignsAndRounding) {
  using T = TypeParam;
  EXPECT_TRUE(std::signbit(Sign()(T(-0.0))));
  EXPECT_TRUE(std::isnan(Sign()(std::numeric_limits<T>::quiet_NaN())));
  EXPECT_EQ(Sign()(-std::numeric_limits<T>::infinity()), T(-1));
  for (const auto& [x, rounded] :
       {std::pair(0.5, 0.0), {1.5, 2.0}, {2.5, 2.0}, {-0.5, -0.0}, {-1.5, -2.0}, {2.4, 2.0}}) {
    EXPECT_EQ(RoundNearestEven()(T(x)), T(rounded)) << x;
    EXPECT_EQ(std::signbit(RoundNearestEven()(T(x))), std::signbit(T(rounded))) << x;
  }
  EXPECT_TRUE(static_cast<bool>(NotEqual()(T(kNan), T(kNan))));
  EXPECT_FALSE(static_cast<bool>(Equal()(T(kNan), T(kNan))));
  EXPECT_TRUE(static_cast<bool>(Equal()(T(-0.0), T(0))));
  EXPECT_TRUE(std::signbit(Remainder()(T(-4), T(2))));
  EXPECT_TRUE(std::isnan(Remainder()(T(4), T(0))));
  EXPECT_EQ(Logistic()(T(-1000)), T(0));
  EXPECT_EQ(Logistic()(T(1000)), T(1));
  EXPECT_GT(Logistic()(T(-80)), T(0));
}

// ---- Complex ----

TEST(ComplexMath, OrderIsLexicographic) {
  const auto c = [](double re, double im) { return Complex128(re, im); };
  EXPECT_EQ(Maximum()(c(1, 9), c(2, 0)), c(2, 0));
  EXPECT_EQ(Maximum()(c(2, 0), c(1, 9)), c(2, 0));
  EXPECT_EQ(Maximum()(c(1, -1), c(1, 3)), c(1, 3));
  EXPECT_EQ(Minimum()(c(1, -1), c(1, 3)), c(1, -1));
  EXPECT_EQ(Minimum()(c(-2, 5), c(1, 3)), c(-2, 5));
  for (const Complex128 nan : {c(kNan, 0), c(0, kNan)}) {
    for (const auto& [a, b] : {std::pair(nan, c(5, 5)), std::pair(c(5, 5), nan)}) {
      EXPECT_TRUE(IsNan(Maximum()(a, b)));
      EXPECT_TRUE(IsNan(Minimum()(a, b)));
    }
  }
}

TEST(ComplexMath, SignOfNanIsNanInBothParts) {
  for (const Complex64 z : {Complex64(NAN, 0), Complex64(0, NAN), Complex64(NAN, NAN), Complex64(INFINITY, NAN)}) {
    EXPECT_TRUE(std::isnan(Sign()(z).real()) && std::isnan(Sign()(z).imag()));
  }
  EXPECT_EQ(Sign()(Complex128(0, 0)), Complex128(0, 0));
  EXPECT_EQ(Sign()(Complex128(3, -4)), Complex128(0.6, -0.8));
  EXPECT_EQ(Sign()(Complex128(-1e-320, 0)), Complex128(-1, 0));
}

TEST(ComplexMath, RsqrtAtInfinityIsZero) {
  for (double im : {kInf, -kInf, 3.0, -3.0, 0.0, -0.0}) {
    for (double re : {kInf, -kInf, 2.0}) {
      if (!std::isinf(re) && !std::isinf(im)) continue;
      const Complex128 z = Rsqrt()(Complex128(re, im));
      EXPECT_EQ(z, Complex128(0, 0)) << re << " " << im;
      EXPECT_EQ(std::signbit(z.imag()), !std::signbit(im)) << re << " " << im;
    }
  }
  EXPECT_EQ(Rsqrt()(Complex64(INFINITY, NAN)), Complex64(0, 0));
}

// The error in units of the result's last place, measured at its modulus.
template <typename T>
double UlpsOff(T got, LongComplex want) {
  using R = typename T::value_type;
  const long double error = std::abs(LongComplex(got.real(), got.imag()) - want);
  const long double modulus = std::max<long double>(std::abs(want), std::numeric_limits<R>::min());
  return static_cast<double>(error / (modulus * std::numeric_limits<R>::epsilon()));
}

LongComplex LongExpm1(LongComplex z) {
  const long double half_sine = std::sin(z.imag() / 2);
  return {std::expm1(z.real()) * std::cos(z.imag()) - 2 * half_sine * half_sine,
          std::exp(z.real()) * std::sin(z.imag())};
}

LongComplex LongLog1p(LongComplex z) {
  // If |1 + z| is far from 1, the logarithm itself is exact enough; near it the series of log(1 + z) is.
  if (std::abs(z) > 0.25L) return std::log(1.0L + z);
  LongComplex term = z, sum = z;
  for (int k = 2; k < 60; ++k) {
    term *= -z;
    sum += term / static_cast<long double>(k);
  }
  return sum;
}

template <typename T>
class ComplexAccuracy : public testing::Test {};
using Complexes = testing::Types<Complex64, Complex128>;
TYPED_TEST_SUITE(ComplexAccuracy, Complexes);

TYPED_TEST(ComplexAccuracy, AgreesWithLongDouble) {
  using T = TypeParam;
  using R = typename T::value_type;
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(-40, 4), angle(-3.14159, 3.14159);
  double expm1 = 0, log1p = 0, rsqrt = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::complex<double> z = std::polar(std::exp2(exponent(random)), angle(random));
    const T x(static_cast<R>(z.real()), static_cast<R>(z.imag()));
    const LongComplex wide(x.real(), x.imag());
    expm1 = std::max(expm1, UlpsOff(Expm1()(x), LongExpm1(wide)));
    log1p = std::max(log1p, UlpsOff(Log1p()(x), LongLog1p(wide)));
    rsqrt = std::max(rsqrt, UlpsOff(Rsqrt()(x), 1.0L / std::sqrt(wide)));
  }
  const double bound = std::is_same_v<T, Complex64> ? 1 : 4;
  EXPECT_LE(expm1, bound);
  EXPECT_LE(log1p, bound);
  EXPECT_LE(rsqrt, bound);
}

TEST(ComplexMath, TinyArgumentsKeepTheirDigits) {
  for (const Complex128 z : {Complex128(1e-300, 1e-290), Complex128(-1e-17, 2e-17), Complex128(3e-200, 0)}) {
    EXPECT_EQ(Expm1()(z), z);
    EXPECT_LE(UlpsOff(Log1p()(z), LongLog1p(LongComplex(z.real(), z.imag()))), 2);
  }
  EXPECT_EQ(Log1p()(Complex128(-1, 0)), Complex128(-kInf, 0));
  EXPECT_EQ(Log1p()(Complex128(1e200, 1e200)).real(), std::log(1e200) + std::log(2.0) / 2);
}

template <typename Functor>
Complex128 Called(Complex128 z) {
  if constexpr (std::is_invocable_v<const Functor&, Complex128>) {
    return Functor()(z);
  } else {
    return kNan;
  }
}

// The functor of a unary op, on a complex number.
Complex128 Evaluate(CoreOp op, Complex128 z) {
  switch (op) {
#define TENSORD_UNARY(op, name, functor, summary) \
  case CoreOp::op:                                \
    return Called<functor>(z);
#define TENSORD_BINARY(op, name, functor, traits, summary)
#define TENSORD_OP(op, definition)
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    default:
      return kNan;
  }
}

TEST(ComplexMath, LimitsAndCutsAreThoseOfAnnexG) {
  for (const ComplexLimit& limit : ComplexLimits()) {
    const Complex128 value = Evaluate(limit.op, limit.z);
    EXPECT_TRUE(limit.IsMetBy(value)) << Def(limit.op).name << limit.z << " is " << value << ", not " << limit.result;
  }
}

TEST(ComplexMath, HyperbolicFunctionsOfSmallAndLargeArguments) {
  EXPECT_EQ(Sinh()(Complex128(1e-12, 1e-12)), Complex128(1e-12, 1e-12));
  EXPECT_EQ(Sinh()(Complex128(1e-20, 0)), Complex128(1e-20, 0));
  // e^x overflows before its half times cos y and sin y do.
  const Complex128 sinh = Sinh()(Complex128(710.2, 1)), cosh = Cosh()(Complex128(710.2, 1));
  const double root = std::exp(355.1);
  EXPECT_NEAR(sinh.real() / root / root, std::cos(1.0) / 2, 1e-12);
  EXPECT_NEAR(sinh.imag() / root / root, std::sin(1.0) / 2, 1e-12);
  EXPECT_EQ(cosh, sinh);
  EXPECT_EQ(static_cast<float>(Apply(Sinh(), Float16(11.5f))), static_cast<float>(Float16(49357.8855f)));
  EXPECT_EQ(static_cast<float>(Apply(Sinh(), Float16(20.0f))), INFINITY);
}

// ---- Convert ----

TEST(Convert, FloatsSaturateAndNanIsZero) {
  EXPECT_EQ((ConvertElement<int32_t>(kNan)), 0);
  EXPECT_EQ((ConvertElement<int64_t>(NAN)), 0);
  EXPECT_EQ((ConvertElement<int32_t>(kInf)), kMax<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(-kInf)), kMin<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(2147483647.0)), kMax<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(2147483646.9)), kMax<int32_t> - 1);
  EXPECT_EQ((ConvertElement<int32_t>(2147483648.0)), kMax<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(2147483648.0f)), kMax<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(2147483520.0f)), 2147483520);
  EXPECT_EQ((ConvertElement<int32_t>(-2147483648.9)), kMin<int32_t>);
  EXPECT_EQ((ConvertElement<int32_t>(-2147483649.0)), kMin<int32_t>);
  EXPECT_EQ((ConvertElement<int64_t>(9223372036854775808.0)), kMax<int64_t>);
  EXPECT_EQ((ConvertElement<int64_t>(9223372036854774784.0)), 9223372036854774784);
  EXPECT_EQ((ConvertElement<int64_t>(-9223372036854775808.0)), kMin<int64_t>);
  EXPECT_EQ((ConvertElement<int64_t>(-1e300)), kMin<int64_t>);
  EXPECT_EQ((ConvertElement<int32_t>(-1.9)), -1);
  EXPECT_EQ((ConvertElement<int32_t>(Float16(65504.0f))), 65504);
  EXPECT_EQ((ConvertElement<int32_t>(BFloat16(3e38f))), kMax<int32_t>);
}

TEST(Convert, IntegersWrapIntoNarrowerOnes) {
  EXPECT_EQ((ConvertElement<int32_t>(int64_t{1} << 32)), 0);
  EXPECT_EQ((ConvertElement<int32_t>(int64_t{0x180000001})), kMin<int32_t> + 1);
  EXPECT_EQ((ConvertElement<int32_t>(kMin<int64_t>)), 0);
  EXPECT_EQ((ConvertElement<int32_t>(kMax<int64_t>)), -1);
  EXPECT_EQ((ConvertElement<int64_t>(kMin<int32_t>)), int64_t{kMin<int32_t>});
}

TEST(Convert, ComplexTakesTheRealPartAndBoolIsNotZero) {
  EXPECT_EQ((ConvertElement<float>(Complex128(1.5, kNan))), 1.5f);
  EXPECT_EQ((ConvertElement<int32_t>(Complex64(-2.5f, 7))), -2);
  EXPECT_EQ((ConvertElement<Bool>(Complex64(0, 7))), Bool(false));
  EXPECT_EQ((ConvertElement<Complex64>(int32_t{3})), Complex64(3, 0));
  EXPECT_EQ((ConvertElement<Complex64>(Complex128(1e300, 0.1))), Complex64(INFINITY, 0.1f));
  EXPECT_EQ((ConvertElement<Bool>(kNan)), Bool(true));
  EXPECT_EQ((ConvertElement<Bool>(-0.0)), Bool(false));
  EXPECT_EQ((ConvertElement<Bool>(1e-320)), Bool(true));
  EXPECT_EQ((ConvertElement<Bool>(Float16::FromBits(0x8000))), Bool(false));
  EXPECT_EQ((ConvertElement<Complex128>(Bool(true))), Complex128(1, 0));
  EXPECT_EQ(static_cast<float>(ConvertElement<BFloat16>(Bool(true))), 1.0f);
}

// The nearest 16-bit float of a number that a long double holds exactly, ties to even, by comparing with the two that
// enclose it. `Half` has `digits` digits and the least exponent `least`.
template <typename Half>
uint16_t Nearest(long double x) {
  constexpr uint16_t kInfinity = std::is_same_v<Half, Float16> ? 0x7c00 : 0x7f80;
  const long double magnitude = std::abs(x);
  const auto value = [](uint16_t bits) -> long double { return static_cast<float>(Half::FromBits(bits)); };
  uint16_t low = 0, high = kInfinity;  // value(low) <= magnitude < value(high)
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (value(middle) <= magnitude ? low : high) = middle;
  }
  // A number beyond the largest one rounds as if the exponents went on.
  const long double step = value(static_cast<uint16_t>(kInfinity - 1)) - value(static_cast<uint16_t>(kInfinity - 2));
  const long double above = high == kInfinity ? value(low) + step : value(high);
  const long double to_low = magnitude - value(low), to_high = above - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && (low & 1) != 0);
  return static_cast<uint16_t>((up ? high : low) | (std::signbit(x) ? 0x8000 : 0));
}

template <typename Half>
class ConvertToHalf : public testing::Test {};
using Halves = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(ConvertToHalf, Halves);

TYPED_TEST(ConvertToHalf, DoublesAreRoundedOnce) {
  using Half = TypeParam;
  std::mt19937_64 random(12);
  // Next to the middle between two neighbours, where rounding to float first would land on the middle itself.
  for (int i = 0; i < 20000; ++i) {
    const uint16_t bits = static_cast<uint16_t>(random() % (std::is_same_v<Half, Float16> ? 0x7bff : 0x7f7f));
    const double low = static_cast<float>(Half::FromBits(bits));
    const double high = static_cast<float>(Half::FromBits(static_cast<uint16_t>(bits + 1)));
    const double middle = low + (high - low) / 2;
    for (double x : {middle, std::nextafter(middle, low), std::nextafter(middle, high), low}) {
      EXPECT_EQ(ConvertElement<Half>(x).bits, Nearest<Half>(x)) << x;
      EXPECT_EQ(ConvertElement<Half>(-x).bits, Nearest<Half>(-x)) << -x;
    }
  }
  for (double x :
       {65504.0, 65519.99, 65520.0, 1e39, 3.3895e38, 3.3961775e38, 5e-324, 0.0, 2.9e-8, 2.98023223876953125e-8}) {
    EXPECT_EQ(ConvertElement<Half>(x).bits, Nearest<Half>(x)) << x;
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(ConvertElement<Half>(kNan))));
}

TYPED_TEST(ConvertToHalf, IntegersAreRoundedOnce) {
  using Half = TypeParam;
  std::mt19937_64 random(13);
  std::vector<int64_t> values = {0,     1,     -1,   kMin<int64_t>, kMax<int64_t>, kMin<int32_t>, kMax<int32_t>,
                                 65519, 65520, 65535};
  for (int power = 5; power < 63; ++power) {
    const int64_t base = int64_t{1} << power;
    for (int64_t half_step : {base >> 12, base >> 11, base >> 9, base >> 8}) {  // the middle of a step and the step
      for (int64_t off : {-1, 0, 1}) {
        values.push_back(base + half_step + off);
        values.push_back(base + 3 * half_step + off);
      }
    }
  }
  for (int i = 0; i < 20000; ++i) values.push_back(static_cast<int64_t>(random() >> (random() % 64)));
  for (int64_t x : values) {
    // A long double holds every int64.
    EXPECT_EQ(ConvertElement<Half>(x).bits, Nearest<Half>(static_cast<long double>(x))) << x;
    const int64_t negative = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    EXPECT_EQ(ConvertElement<Half>(negative).bits, Nearest<Half>(static_cast<long double>(negative))) << negative;
  }
}

TYPED_TEST(ConvertToHalf, HalvesComputeInFloatAndRoundOnce) {
  using Half = TypeParam;
  std::mt19937_64 random(14);
  for (int i = 0; i < 20000; ++i) {
    const Half a = Half::FromBits(static_cast<uint16_t>(random() % 0x7000)),
               b = Half::FromBits(static_cast<uint16_t>(random() % 0x7000));
    const Half sum = Apply(Add(), a, b);
    EXPECT_EQ(sum.bits, Half(static_cast<float>(a) + static_cast<float>(b)).bits);
  }
}

}  // namespace
}  // namespace tensord::scalar
