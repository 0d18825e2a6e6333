// sinh, cosh and the inverse hyperbolic functions as vector code: any value, IEEE results at the edges, within 3 ulp
// elsewhere. A lane's bits depend on that lane alone.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_HYPERBOLIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_HYPERBOLIC_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_HYPERBOLIC_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_HYPERBOLIC_INL_H_
#endif

#include <limits>

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_exp-inl.h"
#include "backends/cpu/math/vector_math_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

template <typename T>
struct HyperbolicConstants;

template <>
struct HyperbolicConstants<float> {
  static constexpr float kOverflow = 91;      // beyond this sinh and cosh are infinite
  static constexpr float kItself = 0x1p-13f;  // below this x^3/6 no longer counts
  static constexpr float kLarge = 0x1p30f;    // from here on 1 no longer counts beside x
};

template <>
struct HyperbolicConstants<double> {
  static constexpr double kOverflow = 712;
  static constexpr double kItself = 0x1p-27;
  static constexpr double kLarge = 0x1p60;
};

// Halves of e^|x| and of e^|x| - 1: e^|x| itself overflows before sinh and cosh do.
template <class D, class V>
HWY_INLINE ExpReduction<V> ReduceExpOfMagnitude(D d, V x) {
  return ReduceExp(d, hn::Min(hn::Abs(x), hn::Set(d, HyperbolicConstants<hn::TFromD<D>>::kOverflow)));
}

template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  using T = hn::TFromD<D>;
  using C = HyperbolicConstants<T>;
  const V one = hn::Set(d, 1);
  const ExpReduction<V> e = ReduceExpOfMagnitude(d, x);
  const V power = PowerOf2(d, hn::Neg(hn::Min(e.n, hn::Set(d, 64))));
  const V half = ScaleByPowerOf2(d, hn::Add(e.expm1_r, hn::Sub(one, power)), hn::Sub(e.n, one));
  // With E = e^|x| - 1: (E + E/(E+1)) / 2, of which the quotient is 1 long before E overflows.
  const V bounded = hn::Min(half, hn::Set(d, T(0x1p60)));
  const V y = hn::Add(half, hn::Div(bounded, hn::Add(hn::Add(bounded, bounded), one)));
  const auto keeps = hn::Or(hn::IsNaN(x), hn::Lt(hn::Abs(x), hn::Set(d, C::kItself)));
  return hn::IfThenElse(keeps, x, hn::CopySign(y, x));
}

template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, 1);
  const ExpReduction<V> e = ReduceExpOfMagnitude(d, x);
  const V half = ScaleByPowerOf2(d, hn::Add(e.expm1_r, one), hn::Sub(e.n, one));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Add(half, hn::Div(hn::Set(d, T(0.25)), half)));
}

// Returns log(1 + t) for small x, and log(2x) for large x.
template <class D, class V>
HWY_INLINE V Log1pOrLogOfTwice(D d, V t, V x) {
  using C = HyperbolicConstants<hn::TFromD<D>>;
  const auto is_large = hn::Gt(x, hn::Set(d, C::kLarge));
  return hn::Add(Log1p(d, hn::IfThenElse(is_large, x, t)),
                 hn::IfThenElseZero(is_large, hn::Set(d, ExpConstants<hn::TFromD<D>>::kLn2)));
}

template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  const V one = hn::Set(d, 1);
  const V magnitude = hn::Abs(x);
  const V square = hn::Mul(magnitude, magnitude);
  // |x| + sqrt(1 + x^2) - 1
  const V t = hn::Add(magnitude, hn::Div(square, hn::Add(one, hn::Sqrt(hn::Add(one, square)))));
  return hn::CopySign(Log1pOrLogOfTwice(d, t, magnitude), x);
}

template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  using T = hn::TFromD<D>;
  const V one = hn::Set(d, 1);
  const V above = hn::Sub(x, one);
  const V t = hn::Add(above, hn::Sqrt(hn::Mul(above, hn::Add(x, one))));
  const V y = Log1pOrLogOfTwice(d, t, x);
  return hn::IfThenElse(hn::Lt(x, one), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
}

template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  using T = hn::TFromD<D>;
  const V magnitude = hn::Abs(x);
  const V t = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(hn::Set(d, 1), magnitude));
  return hn::CopySign(hn::Mul(hn::Set(d, T(0.5)), Log1p(d, t)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_HYPERBOLIC_INL_H_
