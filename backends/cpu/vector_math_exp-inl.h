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

// e^x for x that is neither NaN nor beyond the clamps' reach.
template <class D, class V>
HWY_INLINE V ExpOfClamped(D d, V x) {
  const ExpReduction<V> e = ReduceExp(d, x);
  return ScaleByPowerOf2(d, hn::Add(e.expm1_r, hn::Set(d, 1)), e.n);
}

template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  using C = ExpConstants<hn::TFromD<D>>;
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, C::kUnderflow)), hn::Set(d, C::kOverflow));
  return hn::IfThenElse(hn::IsNaN(x), x, ExpOfClamped(d, clamped));
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
  const V e = ExpOfClamped(d, hn::Max(hn::Neg(hn::Abs(x)), hn::Set(d, C::kUnderflow)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(numerator, hn::Add(one, e)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_EXP_INL_H_
