// SLEEF's functions on the vectors of the current Highway target, for the long tail of math: erf, cbrt, tan, pow,
// atan2, asin, acos, atan, log2, log10, and sin and cos of huge arguments. Only its deterministic variants are used
// (cinz, finz): in the others a lane's bits may depend on its neighbours. Targets that SLEEF lacks go lane by lane
// through the C++ library.
#if defined(TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SLEEF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SLEEF_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SLEEF_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SLEEF_INL_H_
#endif

#include <cmath>

#include "backends/cpu/math/vector_math_base-inl.h"

#undef TENSORD_SLEEF32
#undef TENSORD_SLEEF64
#undef TENSORD_SLEEF_IS_OUT_OF_REACH
#undef TENSORD_SLEEF_V32
#undef TENSORD_SLEEF_V64
// clang passes vectors wider than the whole file's instruction set through memory, whatever a function's own target is;
// SLEEF expects them in registers.
#if HWY_COMPILER_CLANG && HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(__AVX2__)
#define TENSORD_SLEEF_IS_OUT_OF_REACH 1
#else
#define TENSORD_SLEEF_IS_OUT_OF_REACH 0
#endif
#if TENSORD_SLEEF_IS_OUT_OF_REACH
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define TENSORD_SLEEF32(fn) Sleef_finz_##fn##f16_u10avx512f
#define TENSORD_SLEEF64(fn) Sleef_finz_##fn##d8_u10avx512f
#define TENSORD_SLEEF_V32 __m512
#define TENSORD_SLEEF_V64 __m512d
#elif HWY_TARGET == HWY_AVX2
#define TENSORD_SLEEF32(fn) Sleef_finz_##fn##f8_u10avx2
#define TENSORD_SLEEF64(fn) Sleef_finz_##fn##d4_u10avx2
#define TENSORD_SLEEF_V32 __m256
#define TENSORD_SLEEF_V64 __m256d
#elif HWY_TARGET == HWY_SSE4
#define TENSORD_SLEEF32(fn) Sleef_cinz_##fn##f4_u10sse4
#define TENSORD_SLEEF64(fn) Sleef_cinz_##fn##d2_u10sse4
#define TENSORD_SLEEF_V32 __m128
#define TENSORD_SLEEF_V64 __m128d
#elif HWY_TARGET == HWY_SSSE3
#define TENSORD_SLEEF32(fn) Sleef_cinz_##fn##f4_u10sse2
#define TENSORD_SLEEF64(fn) Sleef_cinz_##fn##d2_u10sse2
#define TENSORD_SLEEF_V32 __m128
#define TENSORD_SLEEF_V64 __m128d
#elif HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON
#define TENSORD_SLEEF32(fn) Sleef_finz_##fn##f4_u10advsimd
#define TENSORD_SLEEF64(fn) Sleef_finz_##fn##d2_u10advsimd
#define TENSORD_SLEEF_V32 float32x4_t
#define TENSORD_SLEEF_V64 float64x2_t
#endif

HWY_BEFORE_NAMESPACE();

#ifdef TENSORD_SLEEF32
// sleef.h declares only the baseline target's functions, so the prototypes are repeated here.
extern "C" {
#define TENSORD_DECLARE_UNARY(fn)                           \
  TENSORD_SLEEF_V32 TENSORD_SLEEF32(fn)(TENSORD_SLEEF_V32); \
  TENSORD_SLEEF_V64 TENSORD_SLEEF64(fn)(TENSORD_SLEEF_V64);
#define TENSORD_DECLARE_BINARY(fn)                                             \
  TENSORD_SLEEF_V32 TENSORD_SLEEF32(fn)(TENSORD_SLEEF_V32, TENSORD_SLEEF_V32); \
  TENSORD_SLEEF_V64 TENSORD_SLEEF64(fn)(TENSORD_SLEEF_V64, TENSORD_SLEEF_V64);
TENSORD_DECLARE_UNARY(sin)
TENSORD_DECLARE_UNARY(cos)
TENSORD_DECLARE_UNARY(tan)
TENSORD_DECLARE_UNARY(erf)
TENSORD_DECLARE_UNARY(cbrt)
TENSORD_DECLARE_UNARY(asin)
TENSORD_DECLARE_UNARY(acos)
TENSORD_DECLARE_UNARY(atan)
TENSORD_DECLARE_UNARY(log2)
TENSORD_DECLARE_UNARY(log10)
TENSORD_DECLARE_BINARY(pow)
TENSORD_DECLARE_BINARY(atan2)
#undef TENSORD_DECLARE_UNARY
#undef TENSORD_DECLARE_BINARY
}
#endif

namespace tensord::cpu {
namespace HWY_NAMESPACE {

#ifdef TENSORD_SLEEF32

#define TENSORD_SLEEF_UNARY(Name, fn)           \
  template <class D, class V>                   \
  HWY_INLINE V Name(D /*d*/, V x) {             \
    if constexpr (sizeof(hn::TFromD<D>) == 4) { \
      return V{TENSORD_SLEEF32(fn)(x.raw)};     \
    } else {                                    \
      return V{TENSORD_SLEEF64(fn)(x.raw)};     \
    }                                           \
  }
#define TENSORD_SLEEF_BINARY(Name, fn)             \
  template <class D, class V>                      \
  HWY_INLINE V Name(D /*d*/, V x, V y) {           \
    if constexpr (sizeof(hn::TFromD<D>) == 4) {    \
      return V{TENSORD_SLEEF32(fn)(x.raw, y.raw)}; \
    } else {                                       \
      return V{TENSORD_SLEEF64(fn)(x.raw, y.raw)}; \
    }                                              \
  }

#else

// In long double, because glibc's sin and cos of the doubles nearest to multiples of pi/2 are off by 8 ulp.
#define TENSORD_SLEEF_UNARY(Name, fn)           \
  template <class D, class V>                   \
  HWY_INLINE V Name(D d, V x) {                 \
    using T = hn::TFromD<D>;                    \
    HWY_ALIGN T lanes[hn::MaxLanes(D())];       \
    hn::Store(x, d, lanes);                     \
    for (size_t i = 0; i < hn::Lanes(d); ++i) { \
      const long double lane = lanes[i];        \
      lanes[i] = static_cast<T>(std::fn(lane)); \
    }                                           \
    return hn::Load(d, lanes);                  \
  }
#define TENSORD_SLEEF_BINARY(Name, fn)                                                 \
  template <class D, class V>                                                          \
  HWY_INLINE V Name(D d, V x, V y) {                                                   \
    HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];                                  \
    HWY_ALIGN hn::TFromD<D> others[hn::MaxLanes(D())];                                 \
    hn::Store(x, d, lanes);                                                            \
    hn::Store(y, d, others);                                                           \
    for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::fn(lanes[i], others[i]); \
    return hn::Load(d, lanes);                                                         \
  }

#endif

TENSORD_SLEEF_UNARY(SinAnywhere, sin)
TENSORD_SLEEF_UNARY(CosAnywhere, cos)
TENSORD_SLEEF_UNARY(TanOfNormal, tan)
TENSORD_SLEEF_UNARY(ErfBySleef, erf)
TENSORD_SLEEF_UNARY(Cbrt, cbrt)
TENSORD_SLEEF_UNARY(Asin, asin)
TENSORD_SLEEF_UNARY(Acos, acos)
TENSORD_SLEEF_UNARY(Atan, atan)
TENSORD_SLEEF_UNARY(Log2BySleef, log2)
TENSORD_SLEEF_UNARY(Log10BySleef, log10)
TENSORD_SLEEF_BINARY(PowBelowOverflow, pow)
TENSORD_SLEEF_BINARY(Atan2, atan2)
#undef TENSORD_SLEEF_UNARY
#undef TENSORD_SLEEF_BINARY

// SLEEF's tan of the smallest doubles is 0.
template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  constexpr hn::TFromD<D> kItself = sizeof(hn::TFromD<D>) == 4 ? 0x1p-13 : 0x1p-27;  // x^3/3 no longer counts
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, kItself)), x, TanOfNormal(d, x));
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_MATH_VECTOR_MATH_SLEEF_INL_H_
