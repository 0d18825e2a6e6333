// AVX-512's means for functions of the exponent and the mantissa: each takes one instruction, and tables of sixteen
// entries live in registers. Included if TENSORD_HAVE_LOOKUP is 1; the functions take 512-bit vectors only.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOOKUP_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOOKUP_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOOKUP_INL_H_
#endif

#include "backends/cpu/math/vector_math_base-inl.h"

#undef TENSORD_HAVE_LOOKUP
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define TENSORD_HAVE_LOOKUP 1
#else
#define TENSORD_HAVE_LOOKUP 0
#endif

#if TENSORD_HAVE_LOOKUP
HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

using F32x16 = hn::Vec512<float>;
using F64x8 = hn::Vec512<double>;

// floor(log2 |x|), of subnormal numbers too; -inf of 0, inf of inf.
HWY_INLINE F32x16 ExponentOf(F32x16 x) { return F32x16{_mm512_getexp_ps(x.raw)}; }
HWY_INLINE F64x8 ExponentOf(F64x8 x) { return F64x8{_mm512_getexp_pd(x.raw)}; }

// x / 2^ExponentOf(x), in [1, 2); 1 or -1 of 0 and 1 of inf; NaN of negative numbers and NaN.
HWY_INLINE F32x16 MantissaOf(F32x16 x) {
  return F32x16{_mm512_getmant_ps(x.raw, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan)};
}
HWY_INLINE F64x8 MantissaOf(F64x8 x) { return F64x8{_mm512_getmant_pd(x.raw, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan)}; }

// Sixteen numbers of which each lane takes one, by the low four bits of its index.
HWY_INLINE F32x16 Lookup(const float (&table)[16], hn::Vec512<uint32_t> index) {
  return F32x16{_mm512_permutexvar_ps(index.raw, _mm512_load_ps(table))};
}
HWY_INLINE F64x8 Lookup(const double (&table)[16], hn::Vec512<uint64_t> index) {
  return F64x8{_mm512_permutex2var_pd(_mm512_load_pd(table), index.raw, _mm512_load_pd(table + 8))};
}

// Returns the lanes with the sign bit set.
HWY_INLINE hn::Mask512<float> SignMask(F32x16 x) {
  return hn::Mask512<float>{_mm512_movepi32_mask(_mm512_castps_si512(x.raw))};
}
HWY_INLINE hn::Mask512<double> SignMask(F64x8 x) {
  return hn::Mask512<double>{_mm512_movepi64_mask(_mm512_castpd_si512(x.raw))};
}

// Returns y, but -inf if x is 0, NaN if it is negative or NaN, x if it is inf.
HWY_INLINE F32x16 FixLog(F32x16 y, F32x16 x) {
  return F32x16{_mm512_fixupimm_ps(y.raw, x.raw, _mm512_set1_epi32(0x03530422), 0)};
}
HWY_INLINE F64x8 FixLog(F64x8 y, F64x8 x) {
  return F64x8{_mm512_fixupimm_pd(y.raw, x.raw, _mm512_set1_epi64(0x03530422), 0)};
}

// 2^(k/16), and its rounding error.
template <typename T>
struct Exp2Table;

template <>
struct Exp2Table<float> {
  HWY_ALIGN static constexpr float kPower[16] = {0x1p+0f,        0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f,
                                                 0x1.306fep+0f,  0x1.3dea64p+0f, 0x1.4bfdaep+0f, 0x1.5ab07ep+0f,
                                                 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                                                 0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  HWY_ALIGN static constexpr float kRest[16] = {0,
                                                0x1.9f3122p-25f,
                                                -0x1.c15742p-27f,
                                                0x1.ceac48p-25f,
                                                0x1.4636e2p-25f,
                                                0x1.824684p-25f,
                                                -0x1.593abcp-25f,
                                                -0x1.5bd5ecp-27f,
                                                0x1.9fcef4p-26f,
                                                -0x1.829fdp-25f,
                                                0x1.15506ep-27f,
                                                0x1.51f848p-27f,
                                                -0x1.a94b14p-26f,
                                                -0x1.3d56b2p-27f,
                                                -0x1.822dbcp-27f,
                                                0x1.52486cp-27f};
};

template <>
struct Exp2Table<double> {
  HWY_ALIGN static constexpr double kPower[16] = {0x1p+0,
                                                  0x1.0b5586cf9890fp+0,
                                                  0x1.172b83c7d517bp+0,
                                                  0x1.2387a6e756238p+0,
                                                  0x1.306fe0a31b715p+0,
                                                  0x1.3dea64c123422p+0,
                                                  0x1.4bfdad5362a27p+0,
                                                  0x1.5ab07dd485429p+0,
                                                  0x1.6a09e667f3bcdp+0,
                                                  0x1.7a11473eb0187p+0,
                                                  0x1.8ace5422aa0dbp+0,
                                                  0x1.9c49182a3f09p+0,
                                                  0x1.ae89f995ad3adp+0,
                                                  0x1.c199bdd85529cp+0,
                                                  0x1.d5818dcfba487p+0,
                                                  0x1.ea4afa2a490dap+0};
  HWY_ALIGN static constexpr double kRest[16] = {0,
                                                 0x1.8a62e4adc610bp-54,
                                                 -0x1.19041b9d78a76p-55,
                                                 0x1.9b07eb6c70573p-54,
                                                 0x1.6f46ad23182e4p-55,
                                                 0x1.ada0911f09ebcp-55,
                                                 0x1.d4397afec42e2p-56,
                                                 0x1.6324c054647adp-54,
                                                 -0x1.bdd3413b26456p-54,
                                                 -0x1.41577ee04992fp-55,
                                                 0x1.6e9f156864b27p-54,
                                                 0x1.c7c46b071f2bep-56,
                                                 0x1.7a1cd345dcc81p-54,
                                                 0x1.11065895048ddp-55,
                                                 0x1.2ed02d75b3707p-55,
                                                 -0x1.e9c23179c2893p-54};
};

// An odd function that is 1 from C::kLimit on. C::kPoly has f(t) / t around 0, w, 2 w, … 15 w, of the width w: a row
// for each power of the distance, lowest first; C::kRest has the rounding errors of the first row.
template <class C, class D, class V>
HWY_INLINE V OddByTable(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V magnitude = hn::Abs(x);
  const V rounder = hn::Set(d, FloatLayout<hn::TFromD<D>>::kRounder);
  const V shifted = hn::MulAdd(magnitude, hn::Set(d, C::kPerWidth), rounder);
  const V r = hn::NegMulAdd(hn::Sub(shifted, rounder), hn::Set(d, C::kWidth), magnitude);
  const auto index = hn::BitCast(du, shifted);
  constexpr size_t kCount = sizeof(C::kPoly) / sizeof(C::kPoly[0]);
  V quotient = Lookup(C::kPoly[kCount - 1], index);
  for (size_t i = kCount - 1; i-- > 1;) quotient = hn::MulAdd(quotient, r, Lookup(C::kPoly[i], index));
  quotient = hn::Add(Lookup(C::kPoly[0], index), hn::MulAdd(quotient, r, Lookup(C::kRest, index)));
  const V one = hn::CopySign(hn::Set(d, 1), x);
  return hn::IfThenElse(hn::Ge(magnitude, hn::Set(d, C::kLimit)), one, hn::Mul(quotient, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();
#endif  // TENSORD_HAVE_LOOKUP

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_LOOKUP_INL_H_
