// pow, log2 and log10 as vector code where there are tables in registers; SLEEF's elsewhere. Any values, the results of
// Annex F of C at the edges, within 2 ulp elsewhere. A lane's bits depend on that lane alone. Coefficients are minimax
// polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_VECTOR_MATH_POW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_VECTOR_MATH_POW_INL_H_
#undef TENSORD_BACKENDS_CPU_VECTOR_MATH_POW_INL_H_
#else
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_POW_INL_H_
#endif

#include <limits>

#include "backends/cpu/vector_math_base-inl.h"
#include "backends/cpu/vector_math_lookup-inl.h"
#include "backends/cpu/vector_math_sleef-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if TENSORD_HAVE_LOOKUP

// log2 of each sixteenth of [1, 2), and 2^r beside the powers of Exp2Table.
template <typename T>
struct PowTables;

template <>
struct PowTables<float> {
  // Reciprocals r, multiples of 1/32, so that f = m r - 1 is exact. |f| <= 1/16.
  HWY_ALIGN static constexpr float kReciprocal[16] = {0x1p+0f,   0x1.dp-1f, 0x1.cp-1f, 0x1.ap-1f, 0x1.9p-1f, 0x1.8p-1f,
                                                      0x1.7p-1f, 0x1.6p-1f, 0x1.5p-1f, 0x1.4p-1f, 0x1.3p-1f, 0x1.3p-1f,
                                                      0x1.2p-1f, 0x1.1p-1f, 0x1.1p-1f, 0x1p-1f};
  // -log2 r in two parts; the first leaves room for an exponent.
  HWY_ALIGN static constexpr float kLogHigh[16] = {0,           0x1.22d8p-3f, 0x1.8a88p-3f, 0x1.32cp-2f,  0x1.6cbp-2f,
                                                   0x1.a9p-2f,  0x1.e7ep-2f,  0x1.14c6p-1f, 0x1.3722p-1f, 0x1.5b2cp-1f,
                                                   0x1.811p-1f, 0x1.811p-1f,  0x1.a9p-1f,   0x1.d338p-1f, 0x1.d338p-1f,
                                                   0x1p+0f};
  HWY_ALIGN static constexpr float kLogLow[16] = {0,
                                                  0x1.6e155ap-18f,
                                                  0x1.80abfcp-19f,
                                                  -0x1.1c8f12p-22f,
                                                  0x1.ed0cbap-19f,
                                                  -0x1.a39fbep-20f,
                                                  -0x1.40358ep-19f,
                                                  -0x1.3e032ep-18f,
                                                  0x1.5db83ap-20f,
                                                  0x1.ed0cbap-20f,
                                                  -0x1.6b9026p-19f,
                                                  -0x1.6b9026p-19f,
                                                  -0x1.a39fbep-19f,
                                                  0x1.20a6dep-21f,
                                                  0x1.20a6dep-21f,
                                                  0};
  // (log(1+f) - f + f^2/2) / f^3, lowest degree first.
  static constexpr float kLogPoly[] = {0x1.555552p-2f, -0x1.000334p-2f, 0x1.99f582p-3f, -0x1.4332bp-3f};
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kLog2ERest = 0x1.4ae0cp-26f;
  static constexpr float kLog10Of2 = 0x1.344136p-2f;
  static constexpr float kLog10Of2Rest = -0x1.ec10cp-27f;
  // (2^r - 1) / r on |r| <= 1/32.
  static constexpr float kPowerPoly[] = {0x1.62e43p-1f, 0x1.ebfff4p-3f, 0x1.c6b476p-5f};
  // Adding this rounds to a sixteenth, to nearest even, and leaves it in the low bits.
  static constexpr float kSixteenths = 0x1.8p19f;
};

template <>
struct PowTables<double> {
  HWY_ALIGN static constexpr double kReciprocal[16] = {0x1p+0,   0x1.dp-1, 0x1.cp-1, 0x1.ap-1, 0x1.9p-1, 0x1.8p-1,
                                                       0x1.7p-1, 0x1.6p-1, 0x1.5p-1, 0x1.4p-1, 0x1.3p-1, 0x1.3p-1,
                                                       0x1.2p-1, 0x1.1p-1, 0x1.1p-1, 0x1p-1};
  HWY_ALIGN static constexpr double kLogHigh[16] = {0,
                                                    0x1.22dadc2abp-3,
                                                    0x1.8a8980abf8p-3,
                                                    0x1.32bfee371p-2,
                                                    0x1.6cb0f6865cp-2,
                                                    0x1.a8ff97181p-2,
                                                    0x1.e7df5fe538p-2,
                                                    0x1.14c560fe68p-1,
                                                    0x1.37222bb708p-1,
                                                    0x1.5b2c3da198p-1,
                                                    0x1.810fa51bf6p-1,
                                                    0x1.810fa51bf6p-1,
                                                    0x1.a8ff97181p-1,
                                                    0x1.d338120a6ep-1,
                                                    0x1.d338120a6ep-1,
                                                    0x1p+0};
  HWY_ALIGN static constexpr double kLogLow[16] = {0,
                                                   0x1.a4b69691d7994p-42,
                                                   0x1.e9933354dbf17p-42,
                                                   -0x1.1979a5db68722p-42,
                                                   0x1.1d406db502403p-43,
                                                   0x1.4bc302ffa76fbp-43,
                                                   0x1.5669df6a2b592p-43,
                                                   0x1.5f101c141e67p-42,
                                                   -0x1.708b4b2b5056cp-42,
                                                   -0x1.b8afe492bf6ffp-42,
                                                   0x1.7f5dc57266758p-43,
                                                   0x1.7f5dc57266758p-43,
                                                   0x1.4bc302ffa76fbp-42,
                                                   -0x1.3167ccc538261p-44,
                                                   -0x1.3167ccc538261p-44,
                                                   0};
  static constexpr double kLogPoly[] = {
      0x1.5555555555553p-2, -0x1.fffffffffffb6p-3, 0x1.99999999a20ep-3,   -0x1.55555555dc116p-3, 0x1.249248e6a96c4p-3,
      -0x1.fffff6347623p-4, 0x1.c71dbe6393125p-4,  -0x1.99bcaf1a5d3ccp-4, 0x1.73aab92512c37p-4,  -0x1.2b54970db2091p-4};
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLog2ERest = 0x1.777d0ffda0d24p-56;
  static constexpr double kLog10Of2 = 0x1.34413509f79ffp-2;
  static constexpr double kLog10Of2Rest = -0x1.9dc1da994fd21p-59;
  static constexpr double kPowerPoly[] = {0x1.62e42fefa3a07p-1, 0x1.ebfbdff82c597p-3,  0x1.c6b08d6dea47ep-5,
                                          0x1.3b2ab6fad244ep-7, 0x1.5d89fe45d629cp-10, 0x1.430a75b93923ep-13};
  static constexpr double kSixteenths = 0x1.8p48;
};

// y log2(x) is trusted where its magnitude is less than this.
template <typename T>
constexpr T kTrustedExponent = 1200;

// A number as the sum of two, of which the second is the smaller one, and not rounded off the first.
template <class V>
struct TwoParts {
  V high;
  V low;
};

// Of positive numbers; of 0 and inf anything that is not finite.
template <class D, class V>
HWY_INLINE TwoParts<V> Log2InTwoParts(D d, V x) {
  using T = hn::TFromD<D>;
  using C = PowTables<T>;
  const hn::RebindToUnsigned<D> du;
  const V m = MantissaOf(x);
  const auto index = hn::ShiftRight<FloatLayout<T>::kMantissaBits - 4>(hn::BitCast(du, m));
  const V f = hn::MulSub(m, Lookup(C::kReciprocal, index), hn::Set(d, 1));
  // log(1 + f) = g + g_low, the first f - f^2/2 rounded.
  const V minus_half = hn::Mul(f, hn::Set(d, T(-0.5)));
  const V g = hn::MulAdd(minus_half, f, f);
  const V g_rest = hn::MulAdd(minus_half, f, hn::Sub(f, g));
  const V g_low = hn::MulAdd(hn::Mul(hn::Mul(f, f), f), EvaluatePoly(d, f, C::kLogPoly), g_rest);
  // Times log2(e).
  const V log2_e = hn::Set(d, C::kLog2E);
  const V h = hn::Mul(g, log2_e);
  const V h_rest = hn::MulAdd(g, hn::Set(d, C::kLog2ERest), hn::MulSub(g, log2_e, h));
  const V h_low = hn::MulAdd(g_low, log2_e, h_rest);
  // Plus what the exponent and the table contribute: 0, or more than h.
  const V s = hn::Add(ExponentOf(x), Lookup(C::kLogHigh, index));
  const V high = hn::Add(s, h);
  const V lost = hn::Sub(h, hn::Sub(high, s));
  return {high, hn::Add(lost, hn::Add(h_low, Lookup(C::kLogLow, index)))};
}

// 2^t for |t| < kTrustedExponent.
template <class D, class V>
HWY_INLINE V Exp2OfTwoParts(D d, TwoParts<V> t) {
  using T = hn::TFromD<D>;
  using C = PowTables<T>;
  const hn::RebindToUnsigned<D> du;
  const V sixteenths = hn::Set(d, C::kSixteenths);
  const V shifted = hn::Add(hn::Add(t.high, t.low), sixteenths);
  const V n = hn::Sub(shifted, sixteenths);
  const V r = hn::Add(hn::Sub(t.high, n), t.low);
  const auto index = hn::BitCast(du, shifted);
  const V power = Lookup(Exp2Table<T>::kPower, index);
  const V rest = hn::MulAdd(hn::Mul(power, r), EvaluatePoly(d, r, C::kPowerPoly), Lookup(Exp2Table<T>::kRest, index));
  return ScaleByPowerOf2(d, hn::Add(power, rest), n);  // rounds n down
}

// The right results from those of positive x: power where it is trusted, and otherwise what Annex F says, where the
// result overflows and underflows too.
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
  const TwoParts<V> log2 = Log2InTwoParts(d, hn::Abs(x));
  const V t = hn::Mul(y, log2.high);
  const V power = Exp2OfTwoParts<D, V>(d, {t, hn::MulAdd(y, log2.low, hn::MulSub(y, log2.high, t))});
  const auto trusted = hn::Lt(hn::Abs(t), hn::Set(d, kTrustedExponent<hn::TFromD<D>>));
  if (HWY_LIKELY(hn::AllTrue(d, hn::AndNot(SignMask(x), trusted)))) return power;
  return PowOfAnyBase(d, x, y, power, trusted);
}

template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  const TwoParts<V> log2 = Log2InTwoParts(d, x);
  return FixLog(hn::Add(log2.high, log2.low), x);
}

// Rounded once, but for some 2^-10 ulp: logarithms of powers of ten, themselves rounded, are whole.
template <class D, class V>
HWY_INLINE V Log10(D d, V x) {
  using C = PowTables<hn::TFromD<D>>;
  const TwoParts<V> log2 = Log2InTwoParts(d, x);
  const V factor = hn::Set(d, C::kLog10Of2);
  const V high = hn::Mul(log2.high, factor);
  const V lost = hn::MulAdd(log2.high, hn::Set(d, C::kLog10Of2Rest), hn::MulSub(log2.high, factor, high));
  return FixLog(hn::Add(high, hn::MulAdd(log2.low, factor, lost)), x);
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

// SLEEF's pow of doubles gives infinity a little before the largest number; there the result is the square of a root.
// Of signalling NaNs it makes NaN where others are no matter.
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

// To the bit x and x*x where y is 1 and 2, which is how simplify_algebra writes them.
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

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_POW_INL_H_
