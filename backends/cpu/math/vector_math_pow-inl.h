// pow, log2 and log10 as vector code where there are tables in registers; SLEEF's elsewhere. Any values, the results of
// Annex F of C at the edges, within 2 ulp elsewhere. A lane's bits depend on that lane alone. Coefficients are minimax
// polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_POW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_POW_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_POW_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_POW_INL_H_
#endif

#include <limits>

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_exp-inl.h"
#include "backends/cpu/math/vector_math_lookup-inl.h"
#include "backends/cpu/math/vector_math_sleef-inl.h"
#include "backends/cpu/math/vector_math_split_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if TENSORD_HAVE_LOOKUP

// 2^r beside the powers of Exp2Table.
template <typename T>
struct PowTables;

template <>
struct PowTables<float> {
  // (2^r - 1) / r on |r| <= 1/32.
  static constexpr float kPowerPoly[] = {0x1.62e43p-1f, 0x1.ebfff4p-3f, 0x1.c6b476p-5f};
  // Adding this rounds to a sixteenth, to nearest even, and leaves it in the low bits.
  static constexpr float kSixteenths = 0x1.8p19f;
};

template <>
struct PowTables<double> {
  static constexpr double kPowerPoly[] = {0x1.62e42fefa3a07p-1, 0x1.ebfbdff82c597p-3,  0x1.c6b08d6dea47ep-5,
                                          0x1.3b2ab6fad244ep-7, 0x1.5d89fe45d629cp-10, 0x1.430a75b93923ep-13};
  static constexpr double kSixteenths = 0x1.8p48;
};

// y log2(x) is trusted where its magnitude is less than this.
template <typename T>
constexpr T kTrustedExponent = 1200;

// 2^t for |t| < kTrustedExponent.
template <class D, class V>
HWY_INLINE V Exp2OfTwoParts(D d, TwoParts<V> t) {
  using T = hn::TFromD<D>;
  using C = PowTables<T>;
  const hn::RebindToUnsigned<D> du;
  const V sixteenths = hn::Set(d, C::kSixteenths);
  const V high = FarIfBelow(d, t.high, ExpConstants<T>::kUnderflow2);
  const V shifted = hn::Add(hn::Add(high, t.low), sixteenths);
  const V n = hn::Sub(shifted, sixteenths);
  const V r = hn::Add(hn::Sub(high, n), t.low);
  const auto index = hn::BitCast(du, shifted);
  const V power = Lookup(Exp2Table<T>::kPower, index);
  const V rest = hn::MulAdd(hn::Mul(power, r), EvaluatePoly(d, r, C::kPowerPoly), Lookup(Exp2Table<T>::kRest, index));
  return ScaleByPowerOf2(d, hn::Add(power, rest), n);  // rounds n down
}

// Makes the results for any x from those for positive x: power in the trusted lanes, and otherwise the results of Annex
// F, also if they overflow or underflow.
template <class D, class V, class M>
HWY_NOINLINE V PowOfAnyBase(D d, V x, V y, V power, M trusted) {
  using T = hn::TFromD<D>;
  const V zero = hn::Zero(d), one = hn::Set(d, 1), inf = hn::Set(d, std::numeric_limits<T>::infinity());
  const V magnitude = hn::Abs(x);
  const auto grows = hn::Xor(hn::VecFromMask(d, hn::Gt(magnitude, one)), hn::VecFromMask(d, hn::Lt(y, zero)));
  V z = hn::IfThenElse(hn::MaskFromVec(grows), inf, zero);
  z = hn::IfThenElse(hn::Or(hn::Eq(magnitude, one), hn::Eq(y, zero)), one, z);
  z = hn::IfThenElse(trusted, power, z);

  const V half = hn::Mul(y, hn::Set(d, T(0.5)));
  const auto whole = hn::Eq(hn::Trunc(y), y);
  const auto odd = hn::And(whole, hn::Ne(hn::Trunc(half), half));
  z = hn::IfThenElse(odd, hn::CopySign(z, x), z);
  const auto no_number =
      hn::Or(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::AndNot(whole, hn::And(hn::Lt(x, zero), hn::Lt(magnitude, inf))));
  z = hn::IfThenElse(no_number, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), z);
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, z);
}

template <class D, class V>
HWY_INLINE V PowOfAnyExponent(D d, V x, V y) {
  const TwoParts<V> log2 = LogInTwoParts<Log2Table<hn::TFromD<D>>>(d, hn::Abs(x));
  const V t = hn::Mul(y, log2.high);
  const V power = Exp2OfTwoParts<D, V>(d, {t, hn::MulAdd(y, log2.low, hn::MulSub(y, log2.high, t))});
  const auto trusted = hn::Lt(hn::Abs(t), hn::Set(d, kTrustedExponent<hn::TFromD<D>>));
  if (HWY_LIKELY(hn::AllTrue(d, hn::AndNot(SignMask(x), trusted)))) return power;
  return PowOfAnyBase(d, x, y, power, trusted);
}

template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  const TwoParts<V> log = LogInTwoParts<Log2Table<hn::TFromD<D>>>(d, x);
  return FixLog(hn::Add(log.high, log.low), x);
}

// Returns the decimal logarithm: a whole number for powers of ten, also if they are rounded themselves.
template <class D, class V>
HWY_INLINE V Log10(D d, V x) {
  const TwoParts<V> log = LogInTwoParts<Log10Table<hn::TFromD<D>>>(d, x);
  return FixLog(hn::Add(log.high, log.low), x);
}

#else

template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  return Log2BySleef(d, x);
}

template <class D, class V>
HWY_INLINE V Log10(D d, V x) {
  return Log10BySleef(d, x);
}

// Corrects SLEEF's pow of doubles. It gives infinity a little before the largest number; there the result is the square
// of a root. It makes NaN of signalling NaNs for which other NaNs do not matter.
template <class D, class V>
HWY_INLINE V PowOfAnyExponent(D d, V x, V y) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1);
  const V power = hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, PowBelowOverflow(d, x, y));
  const auto doubtful = hn::And(hn::IsInf(power), hn::And(hn::And(hn::IsFinite(x), hn::IsFinite(y)), hn::Ne(x, zero)));
  if (HWY_LIKELY(hn::AllFalse(d, doubtful))) return power;
  const V root = PowBelowOverflow(d, hn::Abs(x), hn::Mul(y, hn::Set(d, hn::TFromD<D>(0.5))));
  const V square = hn::IfThenElse(hn::Eq(y, hn::Set(d, 1)), hn::Abs(x), hn::Mul(root, root));
  return hn::IfThenElse(doubtful, hn::CopySign(square, power), power);
}

#endif  // TENSORD_HAVE_LOOKUP

// Returns x and x*x to the bit if y is 1 and 2: simplify_algebra rewrites such powers so.
template <class D, class V>
HWY_INLINE V Pow(D d, V x, V y) {
  const V power = PowOfAnyExponent(d, x, y);
  const auto is_first = hn::Eq(y, hn::Set(d, 1)), is_second = hn::Eq(y, hn::Set(d, 2));
  if (HWY_LIKELY(hn::AllFalse(d, hn::Or(is_first, is_second)))) return power;
  return hn::IfThenElse(is_second, hn::Mul(x, x), hn::IfThenElse(is_first, x, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_POW_INL_H_
