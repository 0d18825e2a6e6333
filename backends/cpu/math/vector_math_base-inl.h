// Parts that the vector math functions share: the layout of a float, polynomials, powers of two.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_BASE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_BASE_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_BASE_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_BASE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct FloatLayout;

template <>
struct FloatLayout<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kExponentMask = 0x7f800000;
  static constexpr Bits kBias = 127;
  // Adding this rounds to an integer, to nearest even, and leaves the integer in the low bits.
  static constexpr float kRounder = 0x1.8p23f;
  // The exponent that FarIfBelow gives: far enough that vscalef ends at once, which takes 2^-512 in F32 and
  // 2^-4096 in F64 (measured on Emerald Rapids), and near enough for RoundToInteger.
  static constexpr float kFar = -1000;
};

template <>
struct FloatLayout<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kExponentMask = 0x7ff0000000000000;
  static constexpr Bits kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kFar = -8000;
};

// Horner; coefficients lowest degree first. Independent vectors in flight hide its latency.
template <class D, class V, size_t kCount>
HWY_INLINE V EvaluatePoly(D d, V x, const hn::TFromD<D> (&coefficients)[kCount]) {
  V y = hn::Set(d, coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, coefficients[i]));
  return y;
}

// Rounds to nearest even, for |x| below 2^22 (float) or 2^51 (double).
template <class D, class V>
HWY_INLINE V RoundToInteger(D d, V x) {
  const V rounder = hn::Set(d, FloatLayout<hn::TFromD<D>>::kRounder);
  return hn::Sub(hn::Add(x, rounder), rounder);
}

// 2^n for integral n whose power is a normal number; 0 for the bias of exponents, negated.
template <class D, class V>
HWY_INLINE V PowerOf2(D d, V n) {
  using L = FloatLayout<hn::TFromD<D>>;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, hn::Add(n, hn::Set(d, L::kRounder)));
  return hn::BitCast(d, hn::ShiftLeft<L::kMantissaBits>(hn::Add(bits, hn::Set(du, L::kBias))));
}

// Returns an exponent of e or 2 that is x, or far below `least` where x is less than that; passes NaN. For where the
// power of `least` is zero: a product that rounds to zero takes an assist of the processor, some 80 ns a vector, but
// ScaleByPowerOf2 by a far exponent does not.
template <class D, class V>
HWY_INLINE V FarIfBelow(D d, V x, hn::TFromD<D> least) {
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, least)), hn::Set(d, FloatLayout<hn::TFromD<D>>::kFar), x);
}

// x * 2^n, rounded once, for integral n within twice the exponent's range, or far below it: two factors, of which the
// first is exact.
template <class D, class V>
HWY_INLINE V ScaleByPowerOf2(D d, V x, V n) {
  using T = hn::TFromD<D>;
  const V zeros = hn::Set(d, -static_cast<T>(FloatLayout<T>::kBias));
  const V half = RoundToInteger(d, hn::Mul(n, hn::Set(d, T(0.5))));
  return hn::Mul(hn::Mul(x, PowerOf2(d, hn::Max(half, zeros))), PowerOf2(d, hn::Max(hn::Sub(n, half), zeros)));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// The same in one instruction.
HWY_INLINE hn::Vec512<float> ScaleByPowerOf2(hn::Full512<float> /*d*/, hn::Vec512<float> x, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(x.raw, n.raw)};
}
HWY_INLINE hn::Vec512<double> ScaleByPowerOf2(hn::Full512<double> /*d*/, hn::Vec512<double> x, hn::Vec512<double> n) {
  return hn::Vec512<double>{_mm512_scalef_pd(x.raw, n.raw)};
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_BASE_INL_H_
