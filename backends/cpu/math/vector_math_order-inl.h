// maximum, minimum and remainder as vector code, with StableHLO's rules: NaN wins, +0 is above -0, a remainder has the
// sign of the dividend. All exact.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ORDER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ORDER_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ORDER_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ORDER_INL_H_
#endif

#include <cmath>
#include <limits>

#include "backends/cpu/math/vector_math_base-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V Maximum(D /*d*/, V a, V b) {
  V y = hn::IfThenElse(hn::Gt(a, b), a, b);            // b where it is NaN
  y = hn::IfThenElse(hn::Eq(a, b), hn::And(a, b), y);  // equal but for the sign of a zero
  return hn::IfThenElse(hn::IsNaN(a), a, y);
}

template <class D, class V>
HWY_INLINE V Minimum(D /*d*/, V a, V b) {
  V y = hn::IfThenElse(hn::Lt(a, b), a, b);
  y = hn::IfThenElse(hn::Eq(a, b), hn::Or(a, b), y);
  return hn::IfThenElse(hn::IsNaN(a), a, y);
}

template <class D, class V>
HWY_INLINE V RemainderLaneByLane(D d, V a, V b) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  HWY_ALIGN T divisors[hn::MaxLanes(D())];
  hn::Store(a, d, lanes);
  hn::Store(b, d, divisors);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::fmod(lanes[i], divisors[i]);
  return hn::Load(d, lanes);
}

template <class D, class V>
HWY_INLINE V Remainder(D d, V a, V b) {
#if HWY_NATIVE_FMA
  using T = hn::TFromD<D>;
  const V dividend = hn::Abs(a);
  const V divisor = hn::Abs(b);
  const V quotient = hn::Div(dividend, divisor);
  // While the quotient is an exact integer after truncation, a - q b lies on the grid of b and fits: the fused
  // operation is exact. The quotient may have been rounded up to the next integer; then one divisor goes back, exactly
  // again.
  V r = hn::NegMulAdd(hn::Trunc(quotient), divisor, dividend);
  r = hn::IfThenElse(hn::Lt(r, hn::Zero(d)), hn::Add(r, divisor), r);
  r = hn::IfThenElse(hn::Lt(dividend, divisor), dividend, r);
  r = hn::CopySign(r, a);
  constexpr T kLimit = static_cast<T>(int64_t{1} << (std::numeric_limits<T>::digits - 2));
  const auto exact = hn::Lt(quotient, hn::Set(d, kLimit));
  if (HWY_UNLIKELY(!hn::AllTrue(d, exact))) r = hn::IfThenElse(exact, r, RemainderLaneByLane(d, a, b));
  return r;
#else
  return RemainderLaneByLane(d, a, b);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_ORDER_INL_H_
