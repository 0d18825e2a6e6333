// Logarithms to bases 2 and 10 in two parts, as vector code with tables in registers: within some 2^-10 ulp of the
// number. Coefficients are minimax polynomials of this project. Included where TENSORD_HAVE_LOOKUP is 1.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SPLIT_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SPLIT_LOG_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SPLIT_LOG_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SPLIT_LOG_INL_H_
#endif

#include "backends/cpu/math/vector_math_base-inl.h"
#include "backends/cpu/math/vector_math_lookup-inl.h"

#if TENSORD_HAVE_LOOKUP
HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

// For each sixteenth of [1, 2) a reciprocal r, a multiple of 1/32, so that f = m r - 1 is exact; -0.0375 < f <= 1/16.
template <typename T>
struct SixteenthReciprocals {
  HWY_ALIGN static constexpr T kOf[16] = {1,       0.90625, 0.875,   0.8125,  0.78125, 0.75,    0.71875, 0.6875,
                                          0.65625, 0.625,   0.59375, 0.59375, 0.5625,  0.53125, 0.53125, 0.5};
};

// Constants of the logarithm to a base: -log r in kHigh and kLow, log 2 in kOfTwo and kOfTwoRest. The first parts are
// so short that they are added to an exponent's part exactly. log(1 + f) is f (S - S f/2 + R + f kPoly(f)); S is kSlope
// and R is kSlopeRest.
template <typename T>
struct Log2Table;
template <typename T>
struct Log10Table;

template <>
struct Log2Table<float> {
  static constexpr float kOfTwo = 0x1p+0f;
  static constexpr float kOfTwoRest = 0;
  HWY_ALIGN static constexpr float kHigh[16] = {0,           0x1.22ep-3f, 0x1.8a9p-3f,  0x1.32cp-2f,  0x1.6cbp-2f,
                                                0x1.a9p-2f,  0x1.e7ep-2f, 0x1.14c4p-1f, 0x1.3724p-1f, 0x1.5b2cp-1f,
                                                0x1.811p-1f, 0x1.811p-1f, 0x1.a9p-1f,   0x1.d338p-1f, 0x1.d338p-1f,
                                                0x1p+0f};
  HWY_ALIGN static constexpr float kLow[16] = {0,
                                               -0x1.48f554p-17f,
                                               -0x1.9fd502p-17f,
                                               -0x1.1c8f12p-22f,
                                               0x1.ed0cbap-19f,
                                               -0x1.a39fbep-20f,
                                               -0x1.40358ep-19f,
                                               0x1.60fe68p-17f,
                                               -0x1.d448f8p-17f,
                                               0x1.ed0cbap-20f,
                                               -0x1.6b9026p-19f,
                                               -0x1.6b9026p-19f,
                                               -0x1.a39fbep-19f,
                                               0x1.20a6dep-21f,
                                               0x1.20a6dep-21f,
                                               0};
  static constexpr float kSlope = 0x1.715476p+0f;
  static constexpr float kSlopeRest = 0x1.4ae0cp-26f;
  static constexpr float kPoly[] = {0x1.a39682p-30f, 0x1.ec7098p-2f, -0x1.715bd2p-2f, 0x1.27c624p-2f, -0x1.cf9d44p-3f};
};

template <>
struct Log10Table<float> {
  static constexpr float kOfTwo = 0x1.3441p-2f;
  static constexpr float kOfTwoRest = 0x1.a84fbcp-21f;
  HWY_ALIGN static constexpr float kHigh[16] = {0,
                                                0x1.5e38p-5f,
                                                0x1.db1p-5f,
                                                0x1.715cp-4f,
                                                0x1.b72p-4f,
                                                0x1.ffcp-4f,
                                                0x1.25bap-3f,
                                                0x1.4d44p-3f,
                                                0x1.76a4p-3f,
                                                0x1.a20ap-3f,
                                                0x1.cfa8p-3f,
                                                0x1.cfa8p-3f,
                                                0x1.ffcp-3f,
                                                0x1.194bp-2f,
                                                0x1.194bp-2f,
                                                0x1.3441p-2f};
  HWY_ALIGN static constexpr float kLow[16] = {0,
                                               0x1.66b7eap-21f,
                                               0x1.ed766ap-21f,
                                               0x1.0ce368p-20f,
                                               0x1.cd1716p-20f,
                                               -0x1.ea21c4p-23f,
                                               0x1.042b5ep-20f,
                                               -0x1.f6296ep-25f,
                                               0x1.72edfap-21f,
                                               -0x1.5ec10cp-21f,
                                               0x1.cecb98p-20f,
                                               0x1.cecb98p-20f,
                                               -0x1.ea21c4p-22f,
                                               0x1.def7b6p-21f,
                                               0x1.def7b6p-21f,
                                               0x1.a84fbcp-21f};
  static constexpr float kSlope = 0x1.bcb7b2p-2f;
  static constexpr float kSlopeRest = -0x1.5b235ep-27f;
  static constexpr float kPoly[] = {0x1.20f638p-27f, 0x1.287a72p-3f, -0x1.bcc07ap-4f, 0x1.642972p-4f, -0x1.1757b4p-4f};
};

template <>
struct Log2Table<double> {
  static constexpr double kOfTwo = 0x1p+0;
  static constexpr double kOfTwoRest = 0;
  HWY_ALIGN static constexpr double kHigh[16] = {0,
                                                 0x1.22dadc2ab4p-3,
                                                 0x1.8a8980abfcp-3,
                                                 0x1.32bfee370ep-2,
                                                 0x1.6cb0f6865cp-2,
                                                 0x1.a8ff97181p-2,
                                                 0x1.e7df5fe538p-2,
                                                 0x1.14c560fe69p-1,
                                                 0x1.37222bb707p-1,
                                                 0x1.5b2c3da197p-1,
                                                 0x1.810fa51bf6p-1,
                                                 0x1.810fa51bf6p-1,
                                                 0x1.a8ff971811p-1,
                                                 0x1.d338120a6ep-1,
                                                 0x1.d338120a6ep-1,
                                                 0x1p+0};
  HWY_ALIGN static constexpr double kLow[16] = {0,
                                                -0x1.6d25a5b8a19b2p-44,
                                                -0x1.66cccab240e9p-46,
                                                0x1.cd0cb4492f1bcp-43,
                                                0x1.1d406db502403p-43,
                                                0x1.4bc302ffa76fbp-43,
                                                0x1.5669df6a2b592p-43,
                                                -0x1.41dfc7d7c3321p-43,
                                                0x1.1ee969a95f529p-43,
                                                0x1.1d406db502403p-44,
                                                0x1.7f5dc57266758p-43,
                                                0x1.7f5dc57266758p-43,
                                                -0x1.6879fa00b120ap-43,
                                                -0x1.3167ccc538261p-44,
                                                -0x1.3167ccc538261p-44,
                                                0};
  static constexpr double kSlope = 0x1.71547652b82fep+0;
  static constexpr double kSlopeRest = 0x1.777d0ffda0d24p-56;
  static constexpr double kPoly[] = {-0x1.849520a12fee7p-57, 0x1.ec709dc3a03f9p-2,  -0x1.71547652b8298p-2,
                                     0x1.2776c50f002c2p-2,   -0x1.ec709dc4a09a1p-3, 0x1.a617624d90fd6p-3,
                                     -0x1.71546e53c544dp-3,  0x1.484bfa4e373bep-3,  -0x1.279120f3efbcap-3,
                                     0x1.0c3086883ac1dp-3,   -0x1.b0c9d62143573p-4};
};

template <>
struct Log10Table<double> {
  static constexpr double kOfTwo = 0x1.34413509f78p-2;
  static constexpr double kOfTwoRest = 0x1.fef311f12b358p-46;
  HWY_ALIGN static constexpr double kHigh[16] = {0,
                                                 0x1.5e3966b7e8p-5,
                                                 0x1.db11ed766cp-5,
                                                 0x1.715d0ce368p-4,
                                                 0x1.b721cd1716p-4,
                                                 0x1.ffbfc2bbc8p-4,
                                                 0x1.25ba8215afp-3,
                                                 0x1.4d43f8275ap-3,
                                                 0x1.76a45cbb7ep-3,
                                                 0x1.a209a84fbdp-3,
                                                 0x1.cfa8e765ccp-3,
                                                 0x1.cfa8e765ccp-3,
                                                 0x1.ffbfc2bbc8p-3,
                                                 0x1.194b3bdef68p-2,
                                                 0x1.194b3bdef68p-2,
                                                 0x1.34413509f78p-2};
  HWY_ALIGN static constexpr double kLow[16] = {0,
                                                0x1.2951bb9cd2fb7p-45,
                                                -0x1.40bcd23c3e44cp-45,
                                                -0x1.41149840eaa65p-46,
                                                -0x1.03ad4133e8c4cp-45,
                                                -0x1.ff229f20ed3d2p-46,
                                                0x1.ff081a4e81f0bp-45,
                                                0x1.20ca9a2bcc728p-45,
                                                0x1.bfb1de334b1cbp-45,
                                                -0x1.0cee0ed4ca7e9p-52,
                                                -0x1.2386ad8b819b8p-45,
                                                -0x1.2386ad8b819b8p-45,
                                                -0x1.ff229f20ed3d2p-45,
                                                0x1.cefc5208422d8p-45,
                                                0x1.cefc5208422d8p-45,
                                                0x1.fef311f12b358p-46};
  static constexpr double kSlope = 0x1.bcb7b1526e50ep-2;
  static constexpr double kSlopeRest = 0x1.95355baaafad3p-57;
  static constexpr double kPoly[] = {-0x1.9d1780966f81bp-58, 0x1.287a7636f435cp-3,  -0x1.bcb7b1526e493p-4,
                                     0x1.63c627752cc95p-4,   -0x1.287a76378e8cep-4, 0x1.fc3fa5a88e977p-5,
                                     -0x1.bcb7a7b1a8aa5p-5,  0x1.8b4f08752b5c7p-5,  -0x1.63e5e4bb68312p-5,
                                     0x1.42eeb1be8c417p-5,   -0x1.049089450342dp-5};
};

// A number as the sum of two, of which the second is the smaller one, and not rounded off the first.
template <class V>
struct TwoParts {
  V high;
  V low;
};

// Takes positive numbers; for 0 and inf the result is anything that is not finite.
template <class C, class D, class V>
HWY_INLINE TwoParts<V> LogInTwoParts(D d, V x) {
  using T = hn::TFromD<D>;
  const hn::RebindToUnsigned<D> du;
  const V m = MantissaOf(x);
  const auto index = hn::ShiftRight<FloatLayout<T>::kMantissaBits - 4>(hn::BitCast(du, m));
  const V f = hn::MulSub(m, Lookup(SixteenthReciprocals<T>::kOf, index), hn::Set(d, 1));
  // The slope at f is the sum of `slope`, its rounded value, and `rest`.
  const V first = hn::Set(d, C::kSlope), second = hn::Set(d, -C::kSlope / 2);
  const V slope = hn::MulAdd(second, f, first);
  const V lost_slope = hn::MulAdd(second, f, hn::Sub(first, slope));
  const V rest = hn::MulAdd(f, EvaluatePoly(d, f, C::kPoly), hn::Add(lost_slope, hn::Set(d, C::kSlopeRest)));
  // The part of the exponent and the table is 0, or more than half of all.
  const V exponent = ExponentOf(x);
  const V coarse = hn::MulAdd(exponent, hn::Set(d, C::kOfTwo), Lookup(C::kHigh, index));
  V low = Lookup(C::kLow, index);
  if constexpr (C::kOfTwoRest != 0) low = hn::MulAdd(exponent, hn::Set(d, C::kOfTwoRest), low);
  const V high = hn::MulAdd(f, slope, coarse);
  const V lost = hn::MulAdd(f, slope, hn::Sub(coarse, high));
  return {high, hn::Add(hn::MulAdd(f, rest, lost), low)};
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();
#endif  // TENSORD_HAVE_LOOKUP

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SPLIT_LOG_INL_H_
