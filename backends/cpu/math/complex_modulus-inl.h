// The moduli of complex numbers that lie as pairs of reals: the root of the sum of squares, scaled by a power of two if
// the sum could leave the format or subnormal numbers would count. Below 1.5 ulp. If one part is infinite, so is the
// modulus, whatever the other part is.
#if defined(TENSORD_BACKENDS_CPU_MATH_COMPLEX_MODULUS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_COMPLEX_MODULUS_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_COMPLEX_MODULUS_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_COMPLEX_MODULUS_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

// Between these sizes of the larger part squares are neither infinite nor so small that the digits of their sum are
// lost; outside of them 1/kUp or kUp brings it there.
template <typename R>
struct ModulusRange;
template <>
struct ModulusRange<float> {
  static constexpr float kLeast = 0x1p-50f, kMost = 0x1p62f, kUp = 0x1p100f;
};
template <>
struct ModulusRange<double> {
  static constexpr double kLeast = 0x1p-450, kMost = 0x1p510, kUp = 0x1p700;
};

template <class D, class V>
HWY_INLINE V RootOfSquares(D, V real, V imag) {
  return hn::Sqrt(hn::Add(hn::Mul(real, real), hn::Mul(imag, imag)));
}

template <class D, class V>
HWY_NOINLINE V ScaledModulus(D d, V real, V imag, V larger) {
  using Range = ModulusRange<hn::TFromD<D>>;
  const auto one = hn::Set(d, 1), up = hn::Set(d, Range::kUp), down = hn::Set(d, 1 / Range::kUp);
  const auto is_small = hn::Lt(larger, hn::Set(d, Range::kLeast)), is_large = hn::Gt(larger, hn::Set(d, Range::kMost));
  const auto scale = hn::IfThenElse(is_small, up, hn::IfThenElse(is_large, down, one));
  const auto back = hn::IfThenElse(is_small, down, hn::IfThenElse(is_large, up, one));
  const auto modulus = hn::Mul(RootOfSquares(d, hn::Mul(real, scale), hn::Mul(imag, scale)), back);
  const auto infinity = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
  const auto is_infinite = hn::Or(hn::Eq(hn::Abs(real), infinity), hn::Eq(hn::Abs(imag), infinity));
  return hn::IfThenElse(is_infinite, infinity, modulus);
}

template <class D, class V>
HWY_INLINE V Modulus(D d, V real, V imag) {
  using Range = ModulusRange<hn::TFromD<D>>;
  const auto larger = hn::Max(hn::Abs(real), hn::Abs(imag));
  const auto is_ordinary = hn::And(hn::Ge(larger, hn::Set(d, Range::kLeast)), hn::Le(larger, hn::Set(d, Range::kMost)));
  if (HWY_LIKELY(hn::AllTrue(d, is_ordinary))) return RootOfSquares(d, real, imag);
  return ScaledModulus(d, real, imag, larger);
}

template <typename R>
void ComplexModuli(const void* a, const void* /*b*/, void* out, int64_t n) {
  const hn::ScalableTag<R> d;
  using V = hn::Vec<hn::ScalableTag<R>>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const R* x = static_cast<const R*>(a);
  R* y = static_cast<R*>(out);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V real, imag;
    hn::LoadInterleaved2(d, x + 2 * i, real, imag);
    hn::StoreU(Modulus(d, real, imag), d, y + i);
  }
  if (i == n) return;
  HWY_ALIGN R rest[2 * hn::MaxLanes(hn::ScalableTag<R>())] = {};
  const size_t rest_bytes = static_cast<size_t>(n - i) * sizeof(R);
  std::memcpy(rest, x + 2 * i, 2 * rest_bytes);
  V real, imag;
  hn::LoadInterleaved2(d, rest, real, imag);
  hn::Store(Modulus(d, real, imag), d, rest);
  std::memcpy(y + i, rest, rest_bytes);
}

#else

template <typename R>
void ComplexModuli(const void* a, const void* /*b*/, void* out, int64_t n) {
  const R* x = static_cast<const R*>(a);
  R* y = static_cast<R*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = std::hypot(x[2 * i], x[2 * i + 1]);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
