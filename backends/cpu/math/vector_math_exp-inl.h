// Exponential functions as vector code: exp, exp2, expm1, tanh, logistic. Every function takes any value and gives the
// IEEE result at NaN, ±inf, ±0, overflow and underflow; elsewhere it is within 3 ulp. A lane's bits depend on that lane
// alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_EXP_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_EXP_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_EXP_INL_H_
#endif

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_lookup-inl.h"

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
  static constexpr float kLn2 = 0x1.62e43p-1f;
  // The same of 2^x.
  static constexpr float kOverflow2 = 129;
  static constexpr float kUnderflow2 = -151;
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
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  static constexpr double kOverflow2 = 1025;
  static constexpr double kUnderflow2 = -1076;
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
  static constexpr float kSixteenthsPerOne = 0x1.715476p+4f;  // 16 / ln 2
  // ln 2 / 16 in two parts; the product of the first with any number of sixteenths is exact.
  static constexpr float kSixteenthHigh = 0x1.62e4p-5f;
  static constexpr float kSixteenthLow = 0x1.7f7d1cp-24f;
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/32, lowest degree first.
  static constexpr float kPoly[] = {0x1.000292p-1f, 0x1.555764p-3f};
};

template <>
struct ExpTable<double> {
  static constexpr double kSixteenthsPerOne = 0x1.71547652b82fep+4;
  static constexpr double kSixteenthHigh = 0x1.62e42fefa4p-5;
  static constexpr double kSixteenthLow = -0x1.8432a1b0e2634p-47;
  static constexpr double kPoly[] = {0x1.0000000000005p-1, 0x1.555555548ebf1p-3, 0x1.555555545fb65p-5,
                                     0x1.11123b45da631p-7, 0x1.6c185d65bf7d5p-10};
  // The same with a small relative error of e^r - 1.
  static constexpr double kExpm1Poly[] = {0x1.0000000000004p-1, 0x1.5555555555557p-3,  0x1.55555554704bep-5,
                                          0x1.11111110ab45dp-7, 0x1.6c18520f4c44fp-10, 0x1.a01b65bf46d8fp-13};
};

// x = ln 2 (floor(exponent) + k/16) + r and power = 2^(k/16).
template <class D, class V>
struct ExpByTable {
  V exponent;
  V power;
  V expm1_r;
  hn::Vec<hn::RebindToUnsigned<D>> index;

  // Returns the error of power as an approximation of 2^(k/16) e^r.
  HWY_INLINE V Rest() const { return hn::MulAdd(power, expm1_r, Lookup(Exp2Table<hn::TFromD<D>>::kRest, index)); }
};

template <class D, class V, class Poly>
HWY_INLINE ExpByTable<D, V> ReduceExpByTable(D d, V x, const Poly& poly) {
  using T = hn::TFromD<D>;
  using C = ExpTable<T>;
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, FloatLayout<T>::kRounder);
  const V shifted = hn::MulAdd(x, hn::Set(d, C::kSixteenthsPerOne), rounder);
  const V n = hn::Sub(shifted, rounder);
  V r = hn::NegMulAdd(n, hn::Set(d, C::kSixteenthHigh), x);
  r = hn::NegMulAdd(n, hn::Set(d, C::kSixteenthLow), r);
  const auto index = hn::BitCast(du, shifted);
  return {hn::Mul(n, hn::Set(d, T(0.0625))), Lookup(Exp2Table<T>::kPower, index),
          hn::MulAdd(hn::Mul(r, r), EvaluatePoly(d, r, poly), r), index};
}

// e^x for x between the clamps, within 0.6 ulp where kIsExact and within 1.1 otherwise; of NaN NaN.
template <bool kIsExact = false, class D, class V>
HWY_INLINE V ExpOfClamped(D d, V x) {
  const ExpByTable<D, V> e = ReduceExpByTable(d, x, ExpTable<hn::TFromD<D>>::kPoly);
  const V y = kIsExact ? hn::Add(e.power, e.Rest()) : hn::MulAdd(e.power, e.expm1_r, e.power);
  return ScaleByPowerOf2(d, y, e.exponent);  // rounds it down
}

// tanh(t) / t, for OddByTable.
struct TanhTable {
  static constexpr float kLimit = 9.02f;
  static constexpr float kWidth = 0x1.29fbe8p-1f;
  static constexpr float kPerWidth = 0x1.b7dccep+0f;
  HWY_ALIGN static constexpr float kPoly[][16] = {
      {0x1p+0f, 0x1.cd145p-1f, 0x1.69b758p-1f, 0x1.13eaa4p-1f, 0x1.af947ap-2f, 0x1.5dcec2p-2f, 0x1.24b2e2p-2f,
       0x1.f668c4p-3f, 0x1.b7c878p-3f, 0x1.86f784p-3f, 0x1.5fe242p-3f, 0x1.3fe5f4p-3f, 0x1.253dbep-3f, 0x1.0eaf3ap-3f,
       0x1.f6b33p-4f, 0x1.d52fcap-4f},
      {-0x1.32e8c8p-23f, -0x1.345588p-2f, -0x1.50b006p-2f, -0x1.f19abcp-3f, -0x1.51f474p-3f, -0x1.d039c4p-4f,
       -0x1.4af098p-4f, -0x1.eaf534p-5f, -0x1.792f52p-5f, -0x1.2a62bp-5f, -0x1.e39706p-6f, -0x1.8fb842p-6f,
       -0x1.4fe47ap-6f, -0x1.1e358ap-6f, -0x1.ed914cp-7f, -0x1.adf3fap-7f},
      {-0x1.55534cp-2f, -0x1.161e1ap-3f, 0x1.b843e4p-5f, 0x1.3cdfbep-4f, 0x1.c3e09cp-5f, 0x1.1e0866p-5f, 0x1.69c20cp-6f,
       0x1.d8be28p-7f, 0x1.417ff8p-7f, 0x1.c65018p-8f, 0x1.4bf7b2p-8f, 0x1.f344b6p-9f, 0x1.80b12ep-9f, 0x1.2e9ba8p-9f,
       0x1.e49776p-10f, 0x1.89ff5p-10f},
      {-0x1.46803ep-13f, 0x1.482128p-3f, 0x1.936226p-5f, -0x1.080b2cp-7f, -0x1.be0456p-7f, -0x1.322b5p-7f,
       -0x1.705b8ap-8f, -0x1.b763eap-9f, -0x1.0d6cb4p-9f, -0x1.572bcp-10f, -0x1.c63204p-11f, -0x1.3757fep-11f,
       -0x1.b84f7cp-12f, -0x1.3fddd4p-12f, -0x1.dbbb3cp-13f, -0x1.6908c4p-13f},
      {0x1.140b4ep-3f, -0x1.3bac4p-6f, -0x1.6c604cp-5f, -0x1.23a782p-7f, 0x1.388154p-10f, 0x1.f5efc8p-10f,
       0x1.4a9276p-10f, 0x1.7dffa8p-11f, 0x1.b3d824p-12f, 0x1.fd137p-13f, 0x1.33ee74p-13f, 0x1.82a804p-14f,
       0x1.f6fd6cp-15f, 0x1.51d182p-15f, 0x1.d2dc46p-16f, 0x1.4ac718p-16f},
      {-0x1.b1fa32p-8f, -0x1.88d104p-5f, 0x1.bca25p-7f, 0x1.dc35fap-8f, 0x1.1fe1bep-10f, -0x1.44be82p-13f,
       -0x1.d341dap-13f, -0x1.28fa1p-13f, -0x1.4c5caep-14f, -0x1.6e181ap-15f, -0x1.9b3a8cp-16f, -0x1.dd0a18p-17f,
       -0x1.1eb49ap-17f, -0x1.64d356p-18f, -0x1.caa764p-19f, -0x1.2f7d5ep-19f},
      {-0x1.523986p-5f, 0x1.a0fdc4p-6f, 0x1.a92d3ap-9f, -0x1.7f1294p-9f, -0x1.a0785ap-11f, -0x1.8fed7p-14f,
       0x1.3f0962p-16f, 0x1.752e1ep-16f, 0x1.c6ccep-17f, 0x1.ee54b8p-18f, 0x1.0865aap-18f, 0x1.1fb366p-19f,
       0x1.427c42p-20f, 0x1.75e046p-21f, 0x1.c05752p-22f, 0x1.1588d2p-22f}};
  HWY_ALIGN static constexpr float kRest[16] = {0x1.d3c7d6p-32f,  0x1.447b1p-26f,  0x1.770478p-26f,  -0x1.dc6706p-26f,
                                                0x1.6b683p-29f,   0x1.f665a2p-27f, -0x1.d9781ep-32f, 0x1.0f4b74p-30f,
                                                -0x1.a9d082p-28f, 0x1.37f0a4p-30f, 0x1.b3f03ap-29f,  0x1.109d94p-28f,
                                                0x1.6a497ap-30f,  0x1.4dca28p-28f, -0x1.1cee54p-32f, -0x1.feb63ap-32f};
};

#else

// e^x for x between the clamps; of NaN anything.
template <bool kIsExact = false, class D, class V>
HWY_INLINE V ExpOfClamped(D d, V x) {
  const ExpReduction<V> e = ReduceExp(d, x);
  return ScaleByPowerOf2(d, hn::Add(e.expm1_r, hn::Set(d, 1)), e.n);
}

#endif  // TENSORD_HAVE_LOOKUP

// In x86 the second operand of Min passes through where it is NaN.
template <class D, class V>
HWY_INLINE V ClampForExp(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  return hn::Min(hn::Set(d, C::kOverflow), FarIfBelow(d, x, C::kUnderflow));
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
HWY_INLINE V Exp2(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V bounded = hn::Min(FarIfBelow(d, x, C::kUnderflow2), hn::Set(d, C::kOverflow2));
  const V n = RoundToInteger(d, bounded);
  const V r = hn::Mul(hn::Sub(bounded, n), hn::Set(d, C::kLn2));
  const V expm1_r = hn::MulAdd(hn::Mul(r, r), EvaluatePoly(d, r, C::kPoly), r);
  const V y = ScaleByPowerOf2(d, hn::Add(expm1_r, hn::Set(d, 1)), n);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
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

#if TENSORD_HAVE_LOOKUP

template <class D>
HWY_INLINE F32x16 Tanh(D d, F32x16 x) {
  return OddByTable<TanhTable>(d, x);
}

template <class D>
HWY_INLINE F64x8 Tanh(D d, F64x8 x) {
  const F64x8 magnitude = hn::Min(hn::Set(d, ExpConstants<double>::kTanhOne), hn::Abs(x));  // passes NaN
  const ExpByTable<D, F64x8> e = ReduceExpByTable(d, hn::Add(magnitude, magnitude), ExpTable<double>::kExpm1Poly);
  const F64x8 one = hn::Set(d, 1);
  const F64x8 scale = ScaleByPowerOf2(d, one, e.exponent);
  const F64x8 t = hn::MulAdd(scale, e.Rest(), hn::MulSub(scale, e.power, one));  // e^2|x| - 1
  return hn::CopySign(hn::Div(t, hn::Add(t, hn::Set(d, 2))), x);
}

#else

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

#endif  // TENSORD_HAVE_LOOKUP

template <class D, class V>
HWY_INLINE V Logistic(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V one = hn::Set(d, 1);
  // Works on e^-|x|, so that neither end overflows and small results stay exact.
  const V e = ExpOfClamped<true>(d, FarIfBelow(d, hn::Neg(hn::Abs(x)), C::kUnderflow));
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

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_EXP_INL_H_
