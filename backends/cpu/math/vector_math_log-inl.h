// log and log1p as vector code: any value, IEEE results at the edges, within 2 ulp elsewhere. A lane's bits depend on
// that lane alone. Coefficients are minimax polynomials of this project.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOG_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOG_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOG_INL_H_
#endif

#include <limits>

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_lookup-inl.h"

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

#if TENSORD_HAVE_LOOKUP

template <typename T>
struct LogTable;

// For each sixteenth of [1, 2): a reciprocal r of its middle, 1 and 1/2 at the ends, and -log r. Those in between are
// chosen so that -log r, or its distance from ln 2 in the upper half, is nearly a number of the format.
template <>
struct LogTable<float> {
  static constexpr float kLn2 = 0x1.62e43p-1f;
  HWY_ALIGN static constexpr float kReciprocal[16] = {0x1p+0f,        0x1.d43636p-1f, 0x1.badefep-1f, 0x1.a42dbp-1f,
                                                      0x1.8fb07cp-1f, 0x1.7d12acp-1f, 0x1.6c1ap-1f,   0x1.5caeb8p-1f,
                                                      0x1.4e5f7ep-1f, 0x1.414518p-1f, 0x1.352496p-1f, 0x1.29e358p-1f,
                                                      0x1.1f774cp-1f, 0x1.15b55ep-1f, 0x1.0c9956p-1f, 0x1p-1f};
  HWY_ALIGN static constexpr float kLog[16] = {0,
                                               0x1.6e32d6p-4f,
                                               0x1.290ddap-3f,
                                               0x1.94c6f2p-3f,
                                               0x1.fb290ep-3f,
                                               0x1.2e6bfep-2f,
                                               0x1.5d12bcp-2f,
                                               0x1.8961fep-2f,
                                               0x1.b44b06p-2f,
                                               0x1.dd3a64p-2f,
                                               0x1.025092p-1f,
                                               0x1.154d7ep-1f,
                                               0x1.278962p-1f,
                                               0x1.3937a8p-1f,
                                               0x1.4a4b3ap-1f,
                                               0x1.62e43p-1f};
  // (log(1+f) - f) / f^2 on [-1/32, 1/16], lowest degree first.
  static constexpr float kPoly[] = {-0x1p-1f, 0x1.55584ap-2f, -0x1.0016d6p-2f, 0x1.82af04p-3f};
};

template <>
struct LogTable<double> {
  static constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  HWY_ALIGN static constexpr double kReciprocal[16] = {0x1p+0,
                                                       0x1.d42c0d11c2721p-1,
                                                       0x1.badd8fd287eefp-1,
                                                       0x1.a427887266d79p-1,
                                                       0x1.8fa8b9fc6de47p-1,
                                                       0x1.7d11febb1ba56p-1,
                                                       0x1.6c22430dd07e6p-1,
                                                       0x1.5ca3870254ad9p-1,
                                                       0x1.4e689b9ef919fp-1,
                                                       0x1.414b68577be06p-1,
                                                       0x1.352b94b4c93e9p-1,
                                                       0x1.29ed7cae35cf4p-1,
                                                       0x1.1f795d5bbfb24p-1,
                                                       0x1.15baaca26620bp-1,
                                                       0x1.0c9f91fd9a03dp-1,
                                                       0x1p-1};
  HWY_ALIGN static constexpr double kLog[16] = {0,
                                                0x1.6e8bb85e89e03p-4,
                                                0x1.2914775a16e9fp-3,
                                                0x1.94e4f1a75c594p-3,
                                                0x1.fb50ceadfcf8bp-3,
                                                0x1.2e6dcf9a1dabp-2,
                                                0x1.5cfb7fe18c5dap-2,
                                                0x1.8982dc58218c3p-2,
                                                0x1.b42f1ba8d43b2p-2,
                                                0x1.dd26443827934p-2,
                                                0x1.0244fc5062d28p-1,
                                                0x1.153c0f2553f49p-1,
                                                0x1.2785b31ea0ae6p-1,
                                                0x1.392ddf2b69678p-1,
                                                0x1.4a3f57d10966ap-1,
                                                0x1.62e42fefa39efp-1};
  static constexpr double kPoly[] = {-0x1.0000000000002p-1, 0x1.5555555555f7cp-2,  -0x1.fffffffff645p-3,
                                     0x1.999999805d191p-3,  -0x1.555554858ef4cp-3, 0x1.2492d6d061ef7p-3,
                                     -0x1.000a3743c2123p-3, 0x1.c58b8204b0cdap-4,  -0x1.66822a96e6ffcp-4};
};

// log of 2^e m (1 + lost), m in [1, 2) and lost, m / 2^e as MantissaOf and ExponentOf give them, lost in the scale of
// m.
template <class D, class V>
HWY_INLINE V LogByTable(D d, V exponent, V m, V lost) {
  using T = hn::TFromD<D>;
  using C = LogTable<T>;
  const hn::RebindToUnsigned<D> du;
  const auto index = hn::ShiftRight<FloatLayout<T>::kMantissaBits - 4>(hn::BitCast(du, m));
  const V r = Lookup(C::kReciprocal, index);
  const V f = hn::MulAdd(lost, r, hn::MulSub(m, r, hn::Set(d, 1)));
  // Just below 1 both terms cancel, exactly.
  const V high = hn::MulAdd(exponent, hn::Set(d, C::kLn2), Lookup(C::kLog, index));
  return hn::Add(high, hn::MulAdd(hn::Mul(f, f), EvaluatePoly(d, f, C::kPoly), f));
}

#endif  // TENSORD_HAVE_LOOKUP

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
#if TENSORD_HAVE_LOOKUP
  return LogByTable(d, ExponentOf(x), MantissaOf(x), hn::Zero(d));
#else
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
#endif
}

template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
#if TENSORD_HAVE_LOOKUP
  // 1 + x in two parts: u, and exactly its rounding error.
  const V one = hn::Set(d, 1);
  const V u = hn::Add(x, one);
  const V lost = hn::Sub(hn::Min(x, one), hn::Sub(u, hn::Max(x, one)));
  const V exponent = ExponentOf(u);
  const V y = LogByTable(d, exponent, MantissaOf(u), ScaleByPowerOf2(d, lost, hn::Neg(exponent)));
  return hn::CopySign(FixLog(y, u), x);  // the sign of a zero
#else
  using T = hn::TFromD<D>;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const V one = hn::Set(d, 1);
  // 1 + x in two parts: u, and exactly its rounding error.
  const V u = hn::Add(one, x);
  const V x_part = hn::Sub(u, one);
  const V lost = hn::Add(hn::Sub(one, hn::Sub(u, x_part)), hn::Sub(x, x_part));
  V y = AssembleLog(d, ReduceLog(d, u), hn::Div(lost, u));
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, kInfinity)), y, x);
  y = hn::IfThenElse(hn::Lt(x, hn::Set(d, -1)), hn::Set(d, std::numeric_limits<T>::quiet_NaN()), y);
  y = hn::IfThenElse(hn::Eq(x, hn::Set(d, -1)), hn::Set(d, -kInfinity), y);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // the sign of a zero
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOG_INL_H_
