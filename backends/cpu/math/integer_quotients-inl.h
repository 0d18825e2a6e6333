// Integers divided by one divisor: a multiplication and a shift by numbers that are made once for all of them.
// Quotients are rounded toward zero.
#if defined(TENSORD_BACKENDS_CPU_MATH_INTEGER_QUOTIENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_MATH_INTEGER_QUOTIENTS_INL_H_
#undef TENSORD_BACKENDS_CPU_MATH_INTEGER_QUOTIENTS_INL_H_
#else
#define TENSORD_BACKENDS_CPU_MATH_INTEGER_QUOTIENTS_INL_H_
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/math/integer_reciprocal.h"
#include "engine/ops/scalar/scalar_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR  // whose vectors have no halves of products

namespace hn = hwy::HWY_NAMESPACE;

// Returns the upper halves of products of unsigned numbers.
template <class D>
HWY_INLINE hn::Vec<D> UpperProduct(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::Repartition<uint64_t, D> wide;
    const auto odd_a = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a)));
    const auto even = hn::BitCast(d, hn::ShiftRight<32>(hn::MulEven(a, b)));
    return hn::OddEven(hn::BitCast(d, hn::MulEven(odd_a, b)), even);  // all lanes of b are equal
  } else {
    const hn::Repartition<uint32_t, D> halves;
    const auto low = hn::Set(d, 0xffffffffu);
    const auto low_a = hn::BitCast(halves, a), high_a = hn::BitCast(halves, hn::ShiftRight<32>(a));
    const auto low_b = hn::BitCast(halves, b), high_b = hn::BitCast(halves, hn::ShiftRight<32>(b));
    const auto first = hn::Add(hn::MulEven(high_a, low_b), hn::ShiftRight<32>(hn::MulEven(low_a, low_b)));
    const auto second = hn::Add(hn::MulEven(low_a, high_b), hn::And(first, low));
    return hn::Add(hn::Add(hn::MulEven(high_a, high_b), hn::ShiftRight<32>(first)), hn::ShiftRight<32>(second));
  }
}

// Calls compute(x, quotient) for vectors of numbers, and stores its results.
template <typename T, typename Compute>
HWY_INLINE void ForQuotients(const T* x, T divisor, T* y, int64_t n, const Compute& compute) {
  const IntegerReciprocal<T> reciprocal(divisor);
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(bits, reciprocal.factor);
  const auto by = hn::Set(d, divisor);
  const auto step = [&](auto v) HWY_ATTR {
    const auto size = hn::BitCast(bits, hn::Abs(v));  // of the least number too
    const auto quotient = hn::ShiftRightSame(UpperProduct(bits, size, factor), reciprocal.shift);
    const auto sign = hn::BroadcastSignBit(hn::Xor(v, by));
    return compute(v, hn::Sub(hn::Xor(hn::BitCast(d, quotient), sign), sign));
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(step(hn::LoadU(d, x + i)), d, y + i);
  if (i == n) return;
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const size_t rest_bytes = static_cast<size_t>(n - i) * sizeof(T);
  std::memcpy(rest, x + i, rest_bytes);
  hn::Store(step(hn::Load(d, rest)), d, rest);
  std::memcpy(y + i, rest, rest_bytes);
}

// Divide or Remainder of each of a and b[0].
template <class F, typename T>
void IntegersByOne(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T divisor = *static_cast<const T*>(b);
  T* y = static_cast<T*>(out);
  if (!IntegerReciprocal<T>::Has(divisor)) {
    for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i], divisor);
    return;
  }
  const hn::ScalableTag<T> d;
  const auto by = hn::Set(d, divisor);
  ForQuotients(x, divisor, y, n, [&](auto v, auto quotient) HWY_ATTR {
    if constexpr (std::is_same_v<F, scalar::Divide>) {
      return quotient;
    } else {
      return hn::Sub(v, hn::Mul(quotient, by));
    }
  });
}

#else

template <class F, typename T>
void IntegersByOne(const void* a, const void* b, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T divisor = *static_cast<const T*>(b);
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i], divisor);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
