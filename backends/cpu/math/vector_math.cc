#include "backends/cpu/math/vector_math.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/math/vector_math.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/vector_math_erf-inl.h"
#include "backends/cpu/math/vector_math_exp-inl.h"
#include "backends/cpu/math/vector_math_hyperbolic-inl.h"
#include "backends/cpu/math/vector_math_log-inl.h"
#include "backends/cpu/math/vector_math_order-inl.h"
#include "backends/cpu/math/vector_math_pow-inl.h"
#include "backends/cpu/math/vector_math_sleef-inl.h"
#include "backends/cpu/math/vector_math_trig-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// Whole vectors; the elements past the last one go through the same code in a padded vector, for equal bits.
template <class Function, typename T>
HWY_INLINE void MapUnary(const T* x, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Function()(d, hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const size_t rest_bytes = static_cast<size_t>(n - i) * sizeof(T);
  std::memcpy(rest, x + i, rest_bytes);
  hn::Store(Function()(d, hn::Load(d, rest)), d, rest);
  std::memcpy(y + i, rest, rest_bytes);
}

template <class Function, typename T>
HWY_INLINE void MapBinary(const T* a, const T* b, T* y, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(Function()(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN T rest_a[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  HWY_ALIGN T rest_b[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const size_t rest_bytes = static_cast<size_t>(n - i) * sizeof(T);
  std::memcpy(rest_a, a + i, rest_bytes);
  std::memcpy(rest_b, b + i, rest_bytes);
  hn::Store(Function()(d, hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(y + i, rest_a, rest_bytes);
}

template <class D, class V>
HWY_INLINE V Sqrt(D /*d*/, V x) {
  return hn::Sqrt(x);
}

template <class D, class V>
HWY_INLINE V Rsqrt(D d, V x) {
  return hn::Div(hn::Set(d, 1), hn::Sqrt(x));
}

#define TENSORD_ARRAY_UNARY(Name)                                                            \
  struct Name##Function {                                                                    \
    template <class D, class V>                                                              \
    HWY_INLINE V operator()(D d, V x) const {                                                \
      return Name(d, x);                                                                     \
    }                                                                                        \
  };                                                                                         \
  void Name##F32(const float* x, float* y, int64_t n) { MapUnary<Name##Function>(x, y, n); } \
  void Name##F64(const double* x, double* y, int64_t n) { MapUnary<Name##Function>(x, y, n); }

#define TENSORD_ARRAY_BINARY(Name)                                                                               \
  struct Name##Function {                                                                                        \
    template <class D, class V>                                                                                  \
    HWY_INLINE V operator()(D d, V a, V b) const {                                                               \
      return Name(d, a, b);                                                                                      \
    }                                                                                                            \
  };                                                                                                             \
  void Name##F32(const float* a, const float* b, float* y, int64_t n) { MapBinary<Name##Function>(a, b, y, n); } \
  void Name##F64(const double* a, const double* b, double* y, int64_t n) { MapBinary<Name##Function>(a, b, y, n); }

TENSORD_ARRAY_UNARY(Exp)
TENSORD_ARRAY_UNARY(Expm1)
TENSORD_ARRAY_UNARY(Log)
TENSORD_ARRAY_UNARY(Log1p)
TENSORD_ARRAY_UNARY(Logistic)
TENSORD_ARRAY_UNARY(Tanh)
TENSORD_ARRAY_UNARY(Sin)
TENSORD_ARRAY_UNARY(Cos)
TENSORD_ARRAY_UNARY(Tan)
TENSORD_ARRAY_UNARY(Sqrt)
TENSORD_ARRAY_UNARY(Rsqrt)
TENSORD_ARRAY_UNARY(Erf)
TENSORD_ARRAY_UNARY(Cbrt)
TENSORD_ARRAY_UNARY(Sinh)
TENSORD_ARRAY_UNARY(Cosh)
TENSORD_ARRAY_UNARY(Asin)
TENSORD_ARRAY_UNARY(Acos)
TENSORD_ARRAY_UNARY(Atan)
TENSORD_ARRAY_UNARY(Asinh)
TENSORD_ARRAY_UNARY(Acosh)
TENSORD_ARRAY_UNARY(Atanh)
TENSORD_ARRAY_UNARY(Log2)
TENSORD_ARRAY_UNARY(Log10)
TENSORD_ARRAY_UNARY(Exp2)
TENSORD_ARRAY_BINARY(Pow)
TENSORD_ARRAY_BINARY(Atan2)
TENSORD_ARRAY_BINARY(Maximum)
TENSORD_ARRAY_BINARY(Minimum)
TENSORD_ARRAY_BINARY(Remainder)
#undef TENSORD_ARRAY_UNARY
#undef TENSORD_ARRAY_BINARY

#define TENSORD_TABLE(Bits)                                                                                     \
  {                                                                                                             \
    .exp = Exp##Bits, .expm1 = Expm1##Bits, .log = Log##Bits, .log1p = Log1p##Bits, .logistic = Logistic##Bits, \
    .tanh = Tanh##Bits, .sin = Sin##Bits, .cos = Cos##Bits, .tan = Tan##Bits, .sqrt = Sqrt##Bits,               \
    .rsqrt = Rsqrt##Bits, .erf = Erf##Bits, .cbrt = Cbrt##Bits, .sinh = Sinh##Bits, .cosh = Cosh##Bits,         \
    .asin = Asin##Bits, .acos = Acos##Bits, .atan = Atan##Bits, .asinh = Asinh##Bits, .acosh = Acosh##Bits,     \
    .atanh = Atanh##Bits, .log2 = Log2##Bits, .log10 = Log10##Bits, .exp2 = Exp2##Bits, .pow = Pow##Bits,       \
    .atan2 = Atan2##Bits, .maximum = Maximum##Bits, .minimum = Minimum##Bits, .remainder = Remainder##Bits      \
  }
constexpr VectorMath<float> kTableF32 = TENSORD_TABLE(F32);
constexpr VectorMath<double> kTableF64 = TENSORD_TABLE(F64);
#undef TENSORD_TABLE

const VectorMath<float>* TableF32() { return &kTableF32; }
const VectorMath<double>* TableF64() { return &kTableF64; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(TableF32);
HWY_EXPORT(TableF64);

const VectorMath<float>& VectorMathF32() { return *HWY_DYNAMIC_DISPATCH(TableF32)(); }
const VectorMath<double>& VectorMathF64() { return *HWY_DYNAMIC_DISPATCH(TableF64)(); }

}  // namespace tensord::cpu
#endif
