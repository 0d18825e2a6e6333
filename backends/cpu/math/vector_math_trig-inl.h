// sin and cos as vector code: any value, IEEE results at the edges, within 2 ulp elsewhere, zeros of the functions
// included. A lane's bits depend on that lane alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_TRIG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_TRIG_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_TRIG_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_TRIG_INL_H_
#endif

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

template <typename T>
struct TrigConstants;

template <>
struct TrigConstants<float> {
  // Up to here three parts of pi/2, with fused multiply-adds, leave every bit of the reduced argument right.
  static constexpr float kLimit = 0x1p17f;
  static constexpr float kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kHalfPi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
  // (sin r - r) / r^3 and (cos r - 1 + r^2/2) / r^4 in r^2 on |r| <= pi/4, lowest degree first.
  static constexpr float kSin[] = {-0x1.555552p-3f, 0x1.110be2p-7f, -0x1.9ab1dap-13f};
  static constexpr float kCos[] = {0x1.555554p-5f, -0x1.6c129ap-10f, 0x1.9bc554p-16f};
};

template <>
struct TrigConstants<double> {
  static constexpr double kLimit = 0x1p30;
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  static constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  static constexpr double kSin[] = {-0x1.5555555555555p-3, 0x1.1111111110c75p-7,   -0x1.a01a019e9da4dp-13,
                                    0x1.71de37ad4cc71p-19, -0x1.ae601c8589111p-26, 0x1.5e1002c01258ap-33};
  static constexpr double kCos[] = {0x1.5555555555555p-5,   -0x1.6c16c16c168c8p-10, 0x1.a01a019f37a28p-16,
                                    -0x1.27e4fa020edd5p-22, 0x1.1eeb56ea63871p-29,  -0x1.9072d88c96532p-37};
};

// sin(|x| + quarter_turns pi/2) for |x| below the limit, with the sign changed where `flips` has its sign bit set.
template <int kQuarterTurns, class D, class V>
HWY_INLINE V SinOfMagnitude(D d, V magnitude, V flips) {
  using T = hn::TFromD<D>;
  using C = TrigConstants<T>;
  using Bits = typename FloatLayout<T>::Bits;
  const hn::RebindToUnsigned<D> du;
  const V rounder = hn::Set(d, FloatLayout<T>::kRounder);
  const V shifted = hn::MulAdd(magnitude, hn::Set(d, C::kTwoOverPi), rounder);
  const V n = hn::Sub(shifted, rounder);
  const auto quadrant = hn::Add(hn::BitCast(du, shifted), hn::Set(du, Bits{kQuarterTurns}));
  V r = magnitude;
  for (const T part : C::kHalfPi) r = hn::NegMulAdd(n, hn::Set(d, part), r);

  const V z = hn::Mul(r, r);
  const V sine = hn::MulAdd(hn::Mul(r, z), EvaluatePoly(d, z, C::kSin), r);
  const V minus_half = hn::Set(d, T(-0.5));
  const V cosine = hn::MulAdd(hn::MulAdd(EvaluatePoly(d, z, C::kCos), z, minus_half), z, hn::Set(d, 1));
  const auto odd = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(du, Bits{1})));
  // The second bit of the quadrant, where the sign stands.
  const V turned = hn::BitCast(d, hn::ShiftLeft<sizeof(T) * 8 - 2>(quadrant));
  return hn::Xor(hn::IfThenElse(odd, cosine, sine), hn::And(hn::Xor(turned, flips), hn::SignBit(d)));
}

template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
#if HWY_NATIVE_FMA
  const V magnitude = hn::Abs(x);
  V y = SinOfMagnitude<0>(d, magnitude, x);
  const auto small = hn::Lt(magnitude, hn::Set(d, TrigConstants<hn::TFromD<D>>::kLimit));
  if (HWY_UNLIKELY(!hn::AllTrue(d, small))) y = hn::IfThenElse(small, y, SinAnywhere(d, x));
  return y;
#else
  return SinAnywhere(d, x);  // the reduction above needs fused multiply-adds
#endif
}

template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
#if HWY_NATIVE_FMA
  const V magnitude = hn::Abs(x);
  V y = SinOfMagnitude<1>(d, magnitude, hn::Zero(d));
  const auto small = hn::Lt(magnitude, hn::Set(d, TrigConstants<hn::TFromD<D>>::kLimit));
  if (HWY_UNLIKELY(!hn::AllTrue(d, small))) y = hn::IfThenElse(small, y, CosAnywhere(d, x));
  return y;
#else
  return CosAnywhere(d, x);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_TRIG_INL_H_
