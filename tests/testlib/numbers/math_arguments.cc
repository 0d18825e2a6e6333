#include "tests/testlib/numbers/math_arguments.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

namespace tensord {
namespace {

using Random = std::mt19937_64;

constexpr double kPi = 3.14159265358979323846;

double Uniform(double low, double high, Random& random) {
  return std::uniform_real_distribution<double>(low, high)(random);
}
double Signed(double magnitude, Random& random) { return random() % 2 == 0 ? magnitude : -magnitude; }

// Arguments of interest besides all of them: [-range, range].
template <typename T>
double UsualRange(CoreOp op) {
  const bool f32 = std::is_same_v<T, float>;
  switch (op) {
    case CoreOp::kExp:
    case CoreOp::kLogistic:
      return f32 ? 104 : 746;
    case CoreOp::kExpm1:
    case CoreOp::kLog1p:
      return 2;
    case CoreOp::kTanh:
      return 10;
    case CoreOp::kSinh:
    case CoreOp::kCosh:
      return f32 ? 90 : 711;
    case CoreOp::kExp2:
      return f32 ? 151 : 1076;
    case CoreOp::kAsin:
    case CoreOp::kAcos:
    case CoreOp::kAtanh:
      return 1;
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTan:
      return f32 ? 2e5 : 2e9;
    case CoreOp::kErf:
      return 6;
    case CoreOp::kPow:
      return 20;
    case CoreOp::kRemainder:
      return 1e4;
    default:
      return 8;
  }
}

template <typename T>
std::vector<T> Edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> edges = {T(0),     L::denorm_min(), L::min() / 2, L::min(),      std::nextafter(L::min(), T(0)),
                          L::max(), L::infinity(),   L::epsilon(), L::quiet_NaN()};
  // Halves, whole numbers odd and even, ln 2 and its half, roots of 2, multiples of pi/2, where exp, expm1, sinh, tanh
  // and logistic overflow, underflow or become constant, and where the vector code changes its way.
  for (const double x : {0.5,
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
                         kPi / 2,
                         kPi,
                         1.5 * kPi,
                         16.0,
                         17.0,
                         18.0,
                         88.0,
                         88.72283905206835,
                         89.0,
                         89.4159862922328,
                         87.33654475,
                         103.97208,
                         104.0,
                         127.5,
                         128.0,
                         149.5,
                         105.0,
                         708.39,
                         709.78271289338397,
                         710.0,
                         710.4758600739439,
                         744.44,
                         745.13321910194122,
                         746.0,
                         1022.5,
                         1024.0,
                         1074.5,
                         1e3,
                         1e5,
                         131072.0,
                         8388607.0,
                         8388608.5,
                         16777217.0,
                         1e9,
                         1073741824.0,
                         1e10,
                         4503599627370497.5,
                         9007199254740993.0,
                         1e20,
                         1e30}) {
    const T t = static_cast<T>(x);
    edges.insert(edges.end(), {t, std::nextafter(t, T(0)), std::nextafter(t, L::infinity())});
  }
  // The numbers of the format that are nearest to multiples of pi/2.
  edges.push_back(std::is_same_v<T, float> ? static_cast<T>(std::ldexp(16367173.0, 72))
                                           : static_cast<T>(std::ldexp(6381956970095103.0, 797)));
  const size_t positive = edges.size();
  for (size_t i = 0; i < positive; ++i) edges.push_back(-edges[i]);
  return edges;
}

template <typename T>
T RandomArgument(int64_t kind, double range, Random& random) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  const Bits bits = static_cast<Bits>(random());
  switch (kind) {
    case 0:
      return std::bit_cast<T>(bits);
    case 1:
      return static_cast<T>(Signed(std::exp2(Uniform(-40, 40, random)), random));
    case 2: {  // beside 1, from 1 ulp on
      const double distance = std::exp2(Uniform(-1 - kMantissa, -2, random));
      return static_cast<T>(Signed(1 + Signed(distance, random), random));
    }
    case 3: {  // the nearest to a multiple of pi/2
      const double turns = std::floor(std::exp2(Uniform(0, kMantissa, random)));
      return static_cast<T>(
          Signed(static_cast<double>(static_cast<long double>(turns) * 1.57079632679489661923132L), random));
    }
    case 4:  // subnormal, or a small normal number
      return std::bit_cast<T>(static_cast<Bits>(bits >> 8 | (bits & Bits{1}) << (sizeof(T) * 8 - 1)));
    default:
      return static_cast<T>(Uniform(-range, range, random));
  }
}

// Pairs that random ones hardly ever are.
template <typename T>
void ChooseSecond(CoreOp op, int64_t kind, T x, T& y, Random& random) {
  const double magnitude = std::abs(static_cast<double>(x));
  switch (op) {
    case CoreOp::kPow:
      // The exponent is whole, or chosen for a result that just overflows or underflows.
      if (kind == 0) y = static_cast<T>(static_cast<int64_t>(random() % 81) - 40);
      if (kind == 1 || kind == 2) {
        y = static_cast<T>(Uniform(0.99, 1.05, random) * (kind == 1 ? 1 : -1) * std::numeric_limits<T>::max_exponent /
                           std::log2(magnitude));
      }
      return;
    case CoreOp::kRemainder:
      if (kind < 2) y = x / static_cast<T>(1 + random() % 1000);  // quotients at and beside integers
      return;
    case CoreOp::kAtan2:
    case CoreOp::kDivide:
      if (kind < 2) y = static_cast<T>(static_cast<double>(x) * Uniform(-3, 3, random));
      return;
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
      if (kind == 0) y = static_cast<T>(static_cast<double>(x) * Uniform(-1.01, 1.01, random));
      return;
    default:
      if (kind == 0) y = x;
  }
}

// A point whose parts stay below 2^scale and, where they count, above 2^-scale.
template <typename T>
std::complex<T> RandomPoint(int64_t kind, double scale, Random& random) {
  const double reach = std::exp2(scale);
  const double limit = std::min(reach, 6.0);
  switch (kind) {
    case 0:
      return {static_cast<T>(Uniform(-limit, limit, random)), static_cast<T>(Uniform(-limit, limit, random))};
    case 1:
      return {static_cast<T>(Signed(std::exp2(Uniform(-scale, scale, random)), random)),
              static_cast<T>(Signed(std::exp2(Uniform(-scale, scale, random)), random))};
    case 2: {  // beside the unit circle, and beside 1 and -1
      const double angle =
          random() % 2 == 0 ? Uniform(-kPi, kPi, random) : Signed(std::exp2(Uniform(-12, 0, random)), random);
      const double modulus = 1 + Signed(std::exp2(Uniform(-20, -2, random)), random);
      const std::complex<double> z = Signed(modulus, random) * std::complex<double>(std::cos(angle), std::sin(angle));
      return {static_cast<T>(z.real()), static_cast<T>(z.imag())};
    }
    case 3: {  // any exponents, alike ones half the time
      using L = std::numeric_limits<T>;
      const double least = L::min_exponent - L::digits, most = L::max_exponent;
      const double x = std::exp2(Uniform(least, most, random));
      const double y = random() % 2 == 0 ? x * Uniform(0, 1, random) : std::exp2(Uniform(least, most, random));
      const T re = static_cast<T>(Signed(x, random)), im = static_cast<T>(Signed(y, random));
      return random() % 2 == 0 ? std::complex<T>(re, im) : std::complex<T>(im, re);
    }
    default: {  // beside multiples of pi/2 and of i pi/2
      const double at = static_cast<double>(static_cast<int64_t>(random() % 5) - 2) * kPi / 2;
      const double x = at + Signed(std::exp2(Uniform(-20, -2, random)), random);
      const double y = Signed(std::exp2(Uniform(-20, -2, random)), random);
      return random() % 2 == 0 ? std::complex<T>(static_cast<T>(x), static_cast<T>(y))
                               : std::complex<T>(static_cast<T>(y), static_cast<T>(x));
    }
  }
}

// Exponents of two of the largest parts: beyond, results of one of these overflow, or their squares do.
template <typename T>
double PointScale(CoreOp op) {
  const bool f32 = std::is_same_v<T, float>;
  switch (op) {
    case CoreOp::kExp:
    case CoreOp::kExpm1:
    case CoreOp::kSin:
    case CoreOp::kCos:
    case CoreOp::kTan:
    case CoreOp::kTanh:
    case CoreOp::kSinh:
    case CoreOp::kCosh:
    case CoreOp::kLogistic:
    case CoreOp::kExp2:
      return f32 ? 6 : 9;
    case CoreOp::kPow:
      return 2;
    default:
      return f32 ? 30 : 250;
  }
}

}  // namespace

template <typename T>
MathArguments<T> RealMathArguments(CoreOp op, int64_t count, uint64_t seed) {
  const bool binary = Def(op).op_class == OpClass::kBinary;
  const std::vector<T> edges = Edges<T>();
  const double range = UsualRange<T>(op);
  Random random(seed);
  MathArguments<T> arguments;
  if (binary) {
    for (const T x : edges) {
      arguments.x.insert(arguments.x.end(), edges.size(), x);
      arguments.y.insert(arguments.y.end(), edges.begin(), edges.end());
    }
  } else {
    arguments.x = edges;
  }
  constexpr int64_t kKinds = 8;  // most of them draw from the usual range
  for (int64_t i = 0; i < count; ++i) {
    arguments.x.push_back(RandomArgument<T>(i % kKinds, range, random));
    if (!binary) continue;
    arguments.y.push_back(RandomArgument<T>(static_cast<int64_t>(random() % kKinds), range, random));
    ChooseSecond(op, i / kKinds % 4, arguments.x.back(), arguments.y.back(), random);
  }
  return arguments;
}

template <typename T>
MathArguments<std::complex<T>> ComplexMathArguments(CoreOp op, int64_t count, uint64_t seed) {
  const bool binary = Def(op).op_class == OpClass::kBinary;
  const double scale = PointScale<T>(op);
  Random random(seed);
  MathArguments<std::complex<T>> arguments;
  // In powers, a part of the logarithm is an angle, which needs more digits the more turns it takes.
  const bool is_power = op == CoreOp::kPow || op == CoreOp::kExp2;
  const auto kind_of = [is_power](int64_t kind) { return is_power && kind == 3 ? 0 : kind; };
  for (int64_t i = 0; i < count; ++i) {
    arguments.x.push_back(RandomPoint<T>(kind_of(i % 5), scale, random));
    if (binary) arguments.y.push_back(RandomPoint<T>(kind_of(i / 5 % 5), scale, random));
  }
  return arguments;
}

template MathArguments<float> RealMathArguments(CoreOp op, int64_t count, uint64_t seed);
template MathArguments<double> RealMathArguments(CoreOp op, int64_t count, uint64_t seed);
template MathArguments<std::complex<float>> ComplexMathArguments(CoreOp op, int64_t count, uint64_t seed);
template MathArguments<std::complex<double>> ComplexMathArguments(CoreOp op, int64_t count, uint64_t seed);

}  // namespace tensord
