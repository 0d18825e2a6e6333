// log and log1p as vector code: any value, IEEE results at the edges, within 2 ulp elsewhere. A lane's bits depend on
// that lane alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_VECTOR_MATH_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_VECTOR_MATH_LOG_INL_H_
#undef TENSORD_BACKENDS_CPU_VECTOR_MATH_LOG_INL_H_
#else
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_LOG_INL_H_
#endif

#include <limits>

#include "backends/cpu/vector_math_base-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

template <typename T>
struct LogConstants;

template <>
struct LogConstants<float> {
  static constexpr float kLn2High = 0x1.62e4p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr uint32_t kSqrtHalfBits = 0x3f3504f3;
  static constexpr float kSubnormalScale = 0x1p24f;
  static constexpr float kSubnormalExponent = 24;
  // (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2)-1, sqrt(2)-1], lowest degree first.
  static constexpr float kPoly[] = {0x1.555554p-2f, -0x1.fffff8p-3f, 0x1.999d46p-3f, -0x1.555c9p-3f, 0x1.23d51p-3f,
                                    -0x1.fcbecp-4f, 0x1.de362p-4f,   -0x1.d782cp-4f, 0x1.204ap-4f};
};

template <>
struct LogConstants<double> {
  static constexpr double kLn2High = 0x1.62e42fefa4p-1;
  static constexpr double kLn2Low = -0x1.8432a1b0e2634p-43;
  static constexpr uint64_t kSqrtHalfBits = 0x3fe6a09e667f3bcd;
  static constexpr double kSubnormalScale = 0x1p54;
  static constexpr double kSubnormalExponent = 54;
  // (log((1+s)/(1-s)) / s - 2) / s^2 as a polynomial in s^2, lowest degree first.
  static constexpr double kPoly[] = {0x1.5555555555558p-1, 0x1.9999999995303p-2, 0x1.2492492df3035p-2,
                                     0x1.c71c62e0b72cbp-3, 0x1.7462b661a6659p-3, 0x1.39fe212aea87bp-3,
                                     0x1.2b5b8533b7489p-3};
};

// x = 2^exponent (1 + fraction) with 1 + fraction in [sqrt(1/2), sqrt(2)), for positive normal x.
template <class V>
struct LogReduction {
  V exponent;
  V fraction;
};

template <class D, class V>
HWY_INLINE LogReduction<V> ReduceLog(D d, V x) {
  using T = hn::TFromD<D>;
  using L = FloatLayout<T>;
  using Bits = typename L::Bits;
  const hn::RebindToUnsigned<D> du;
  constexpr Bits kOne = L::kBias << L::kMantissaBits;
  constexpr T kIntegers = static_cast<T>(Bits{1} << L::kMantissaBits);  // floats from here on are integers
  const auto bits = hn::BitCast(du, x);
  const auto shifted = hn::Add(bits, hn::Set(du, static_cast<Bits>(kOne - LogConstants<T>::kSqrtHalfBits)));
  const auto biased = hn::ShiftRight<L::kMantissaBits>(shifted);
  const V exponent = hn::Sub(hn::BitCast(d, hn::Or(biased, hn::BitCast(du, hn::Set(d, kIntegers)))),
                             hn::Set(d, kIntegers + static_cast<T>(L::kBias)));
  const auto mantissa = hn::Add(hn::Sub(bits, hn::And(shifted, hn::Set(du, L::kExponentMask))), hn::Set(du, kOne));
  return {exponent, hn::Sub(hn::BitCast(d, mantissa), hn::Set(d, 1))};
}

// exponent ln 2 + log(1 + fraction) + extra, where extra is small against one of the others or both are zero.
template <class D, class V>
HWY_INLINE V AssembleLog(D d, LogReduction<V> x, V extra) {
  using T = hn::TFromD<D>;
  using C = LogConstants<T>;
  const V f = x.fraction;
  const V low = hn::MulAdd(x.exponent, hn::Set(d, C::kLn2Low), extra);
  const V half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, T(0.5)));
  V tail;  // log(1 + f) - f, with the low parts
  if constexpr (sizeof(T) == 4) {
    const V cube = hn::Mul(hn::Mul(f, f), f);
    tail = hn::Sub(hn::MulAdd(cube, EvaluatePoly(d, f, C::kPoly), low), half_square);
  } else {
    const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2)));
    const V z = hn::Mul(s, s);
    const V r = hn::MulAdd(z, EvaluatePoly(d, z, C::kPoly), half_square);
    tail = hn::Sub(hn::MulAdd(s, r, low), half_square);
  }
  return hn::MulAdd(x.exponent, hn::Set(d, C::kLn2High), hn::Add(f, tail));
}

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  using T = hn::TFromD<D>;
  using C = LogConstants<T>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
  const V normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, C::kSubnormalScale)), x);
  LogReduction<V> reduced = ReduceLog(d, normal);
  reduced.exponent = hn::Sub(reduced.exponent, hn::IfThenElseZero(subnormal, hn::Set(d, C::kSubnormalExponent)));
  V y = AssembleLog(d, reduced, hn::Zero(d));
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), y, x);  // inf and NaN
  y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -kInfinity), y);
}

template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const V one = hn::Set(d, 1);
  // 1 + x in two parts: u, and exactly what rounding took from it.
  const V u = hn::Add(one, x);
  const V x_part = hn::Sub(u, one);
  const V lost = hn::Add(hn::Sub(one, hn::Sub(u, x_part)), hn::Sub(x, x_part));
  V y = AssembleLog(d, ReduceLog(d, u), hn::Div(lost, u));
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), y, x);
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -1)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, -1)), hn::Set(d, -kInfinity), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // the sign of a zero
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_LOG_INL_H_
