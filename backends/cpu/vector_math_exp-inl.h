// Exponential functions as vector code: exp, expm1, tanh, logistic. Every function takes any value and gives the IEEE
// result at NaN, ±inf, ±0, overflow and underflow; elsewhere it is within 3 ulp. A lane's bits depend on that lane
// alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_
#undef TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_
#else
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_
#endif

#include "backends/cpu/vector_math_base-inl.h"
#include "backends/cpu/vector_math_lookup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

template <typename T>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kLog2E = 0x1.715476p+0f;
  // ln 2 in two parts; the product of the first with any exponent is exact.
  static constexpr float kLn2High = 0x1.62e4p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  // Beyond these exp is infinite or zero, expm1 is -1, and the other half of logistic or tanh no longer counts.
  static constexpr float kOverflow = 89;
  static constexpr float kUnderflow = -104;
  static constexpr float kMinusOne = -19;
  static constexpr float kTanhOne = 10;
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2, lowest degree first.
  static constexpr float kPoly[] = {0x1.0p-1f, 0x1.5554dcp-3f, 0x1.555568p-5f, 0x1.120c3cp-7f, 0x1.6caf06p-10f};
};

template <>
struct ExpConstants<double> {
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLn2High = 0x1.62e42fefa4p-1;
  static constexpr double kLn2Low = -0x1.8432a1b0e2634p-43;
  static constexpr double kOverflow = 710;
  static constexpr double kUnderflow = -746;
  static constexpr double kMinusOne = -40;
  static constexpr double kTanhOne = 20;
  static constexpr double kPoly[] = {0x1.0p-1,
                                     0x1.5555555555557p-3,
                                     0x1.5555555555552p-5,
                                     0x1.1111111110046p-7,
                                     0x1.6c16c16c1893bp-10,
                                     0x1.a01a01ac26ef3p-13,
                                     0x1.a01a0197bce7bp-16,
                                     0x1.71de018a576b5p-19,
                                     0x1.27e500ced335ap-22,
                                     0x1.af4f1b79c0fc2p-26,
                                     0x1.1f332fa351ec8p-29};
};

// x = n ln 2 + r with integral n and |r| <= ln(2)/2, and e^r - 1 without cancellation.
template <class V>
struct ExpReduction {
  V n;
  V r;
  V expm1_r;
};

template <class D, class V>
HWY_INLINE ExpReduction<V> ReduceExp(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V n = RoundToInteger(d, hn::Mul(x, hn::Set(d, C::kLog2E)));
  V r = hn::NegMulAdd(n, hn::Set(d, C::kLn2High), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kLn2Low), r);
  return {n, r, hn::MulAdd(hn::Mul(r, r), EvaluatePoly(d, r, C::kPoly), r)};
}

#if TENSORD_HAVE_LOOKUP

template <typename T>
struct ExpTable;

template <>
struct ExpTable<float> {
  HWY_ALIGN static constexpr float kPower[16] = {
      0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f,  0x1.3dea64p+0f,
      0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
      0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};  // 2^(k/16), and what rounding took from it
  HWY_ALIGN static constexpr float kPowerRest[16] = {0,
                                                     0x1.9f3122p-25f,
                                                     -0x1.c15742p-27f,
                                                     0x1.ceac48p-25f,
                                                     0x1.4636e2p-25f,
                                                     0x1.824684p-25f,
                                                     -0x1.593abcp-25f,
                                                     -0x1.5bd5ecp-27f,
                                                     0x1.9fcef4p-26f,
                                                     -0x1.829fdp-25f,
                                                     0x1.15506ep-27f,
                                                     0x1.51f848p-27f,
                                                     -0x1.a94b14p-26f,
                                                     -0x1.3d56b2p-27f,
                                                     -0x1.822dbcp-27f,
                                                     0x1.52486cp-27f};
  static constexpr float kSixteenthsPerOne = 0x1.715476p+4f;  // 16 / ln 2
  // ln 2 / 16 in two parts; the product of the first with any number of sixteenths is exact.
  static constexpr float kSixteenthHigh = 0x1.62e4p-5f;
  static constexpr float kSixteenthLow = 0x1.7f7d1cp-24f;
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/32, lowest degree first.
  static constexpr float kPoly[] = {0x1.000292p-1f, 0x1.555764p-3f};
};

template <>
struct ExpTable<double> {
  HWY_ALIGN static constexpr double kPower[16] = {0x1p+0,
                                                  0x1.0b5586cf9890fp+0,
                                                  0x1.172b83c7d517bp+0,
                                                  0x1.2387a6e756238p+0,
                                                  0x1.306fe0a31b715p+0,
                                                  0x1.3dea64c123422p+0,
                                                  0x1.4bfdad5362a27p+0,
                                                  0x1.5ab07dd485429p+0,
                                                  0x1.6a09e667f3bcdp+0,
                                                  0x1.7a11473eb0187p+0,
                                                  0x1.8ace5422aa0dbp+0,
                                                  0x1.9c49182a3f09p+0,
                                                  0x1.ae89f995ad3adp+0,
                                                  0x1.c199bdd85529cp+0,
                                                  0x1.d5818dcfba487p+0,
                                                  0x1.ea4afa2a490dap+0};
  HWY_ALIGN static constexpr double kPowerRest[16] = {0,
                                                      0x1.8a62e4adc610bp-54,
                                                      -0x1.19041b9d78a76p-55,
                                                      0x1.9b07eb6c70573p-54,
                                                      0x1.6f46ad23182e4p-55,
                                                      0x1.ada0911f09ebcp-55,
                                                      0x1.d4397afec42e2p-56,
                                                      0x1.6324c054647adp-54,
                                                      -0x1.bdd3413b26456p-54,
                                                      -0x1.41577ee04992fp-55,
                                                      0x1.6e9f156864b27p-54,
                                                      0x1.c7c46b071f2bep-56,
                                                      0x1.7a1cd345dcc81p-54,
                                                      0x1.11065895048ddp-55,
                                                      0x1.2ed02d75b3707p-55,
                                                      -0x1.e9c23179c2893p-54};
  static constexpr double kSixteenthsPerOne = 0x1.71547652b82fep+4;
  static constexpr double kSixteenthHigh = 0x1.62e42fefa4p-5;
  static constexpr double kSixteenthLow = -0x1.8432a1b0e2634p-47;
  static constexpr double kPoly[] = {0x1.0000000000005p-1, 0x1.555555548ebf1p-3, 0x1.555555545fb65p-5,
                                     0x1.11123b45da631p-7, 0x1.6c185d65bf7d5p-10};
};

// e^x for x between the clamps, within 0.6 ulp where kIsExact and within 1.1 otherwise; of NaN NaN.
template <bool kIsExact = false, class D, class V>
HWY_INLINE V ExpOfClamped(D d, V x) {
  using T = hn::TFromD<D>;
  using C = ExpTable<T>;
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, FloatLayout<T>::kRounder);
  const V shifted = hn::MulAdd(x, hn::Set(d, C::kSixteenthsPerOne), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, C::kSixteenthHigh), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kSixteenthLow), r);
  const auto index = hn::BitCast(du, shifted);
  const V power = Lookup(C::kPower, index);
  const V expm1_r = hn::MulAdd(hn::Mul(r, r), EvaluatePoly(d, r, C::kPoly), r);
  V y;
  if constexpr (kIsExact) {
    y = hn::Add(power, hn::MulAdd(power, expm1_r, Lookup(C::kPowerRest, index)));
  } else {
    y = hn::MulAdd(power, expm1_r, power);
  }
  return ScaleByPowerOf2(d, y, hn::Mul(n, hn::Set(d, T(0.0625))));  // rounds it down
}

#else

// e^x for x between the clamps; of NaN anything.
template <bool kIsExact = false, class D, class V>
HWY_INLINE V ExpOfClamped(D d, V x) {
  const ExpReduction<V> e = ReduceExp(d, x);
  return ScaleByPowerOf2(d, hn::Add(e.expm1_r, hn::Set(d, 1)), e.n);
}

#endif  // TENSORD_HAVE_LOOKUP

// In x86 the second operand of Min and Max passes through where it is NaN.
template <class D, class V>
HWY_INLINE V ClampForExp(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  return hn::Min(hn::Set(d, C::kOverflow), hn::Max(hn::Set(d, C::kUnderflow), x));
}

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  const V y = ExpOfClamped(d, ClampForExp(d, x));
#if TENSORD_HAVE_LOOKUP
  return y;
#else
  return hn::IfThenElse(hn::IsNaN(x), x, y);
#endif
}

template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  using T = hn::TFromD<D>;
  using C = ExpConstants<T>;
  const V one = hn::Set(d, 1);
  const ExpReduction<V> e = ReduceExp(d, hn::Min(hn::Max(x, hn::Set(d, C::kMinusOne)), hn::Set(d, C::kOverflow)));
  // 2^n ((e^r - 1) + (1 - 2^-n)); past 64 the power is too small to count and would leave the exponent's range.
  const V power = PowerOf2(d, hn::Neg(hn::Min(e.n, hn::Set(d, 64))));
  const V y = ScaleByPowerOf2(d, hn::Add(e.expm1_r, hn::Sub(one, power)), e.n);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));  // the sign of a zero
}

template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V one = hn::Set(d, 1);
  const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, C::kTanhOne));
  const ExpReduction<V> e = ReduceExp(d, hn::Add(magnitude, magnitude));
  const V power = PowerOf2(d, e.n);
  const V t = hn::MulAdd(power, e.expm1_r, hn::Sub(power, one));  // e^2|x| - 1
  const V y = hn::Div(t, hn::Add(t, hn::Set(d, 2)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(y, x));
}

template <class D, class V>
HWY_INLINE V Logistic(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V one = hn::Set(d, 1);
  // Of e^-|x|, so that neither end overflows and small results stay exact.
  const V e = ExpOfClamped<true>(d, hn::Max(hn::Set(d, C::kUnderflow), hn::Neg(hn::Abs(x))));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  const V y = hn::Div(numerator, hn::Add(one, e));
#if TENSORD_HAVE_LOOKUP
  return y;
#else
  return hn::IfThenElse(hn::IsNaN(x), x, y);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_
