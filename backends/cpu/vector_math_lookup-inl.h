// What AVX-512 has for functions of the exponent and the mantissa: both in an instruction each, and tables of sixteen
// entries that live in registers. Included where TENSORD_HAVE_LOOKUP is 1; the functions take 512-bit vectors only.
#if defined(TENSORD_BACKENDS_CPU_VECTOR_MATH_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_VECTOR_MATH_LOOKUP_INL_H_
#undef TENSORD_BACKENDS_CPU_VECTOR_MATH_LOOKUP_INL_H_
#else
#define TENSORD_BACKENDS_CPU_VECTOR_MATH_LOOKUP_INL_H_
#endif

#include "backends/cpu/vector_math_base-inl.h"

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

// Where the sign bit is set.
HWY_INLINE hn::Mask512<float> SignMask(F32x16 x) {
  return hn::Mask512<float>{_mm512_movepi32_mask(_mm512_castps_si512(x.raw))};
}
HWY_INLINE hn::Mask512<double> SignMask(F64x8 x) {
  return hn::Mask512<double>{_mm512_movepi64_mask(_mm512_castpd_si512(x.raw))};
}

// y, but -inf where x is 0, NaN where it is negative or NaN, x where it is inf.
HWY_INLINE F32x16 FixLog(F32x16 y, F32x16 x) {
  return F32x16{_mm512_fixupimm_ps(y.raw, x.raw, _mm512_set1_epi32(0x03530422), 0)};
}
HWY_INLINE F64x8 FixLog(F64x8 y, F64x8 x) {
  return F64x8{_mm512_fixupimm_pd(y.raw, x.raw, _mm512_set1_epi64(0x03530422), 0)};
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();
#endif  // TENSORD_HAVE_LOOKUP

#endif  // TENSORD_BACKENDS_CPU_VECTOR_MATH_LOOKUP_INL_H_
