// A number of each of several matrices: a vector, or two for complex ones. Arithmetic on them, lane by lane.
#if defined(TENSORD_BACKENDS_CPU_LINALG_LANES_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_LINALG_LANES_NUMBERS_INL_H_
#undef TENSORD_BACKENDS_CPU_LINALG_LANES_NUMBERS_INL_H_
#else
#define TENSORD_BACKENDS_CPU_LINALG_LANES_NUMBERS_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
using Tag = hn::ScalableTag<T>;
template <typename T>
using Reals = hn::Vec<Tag<T>>;
template <typename T>
using Lanes = hn::Mask<Tag<T>>;
template <typename T>
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag<T>()));

// One number of every matrix.
template <typename T>
struct RealLanes {
  using Real = T;
  static constexpr int64_t kParts = 1;         // reals of a number
  static constexpr int64_t kStep = kLanes<T>;  // elements from one entry to the next
  Reals<T> re;
};

template <typename T>
struct ComplexLanes {
  using Real = T;
  static constexpr int64_t kParts = 2;  // the real and the imaginary one
  static constexpr int64_t kStep = 2 * kLanes<T>;
  Reals<T> re, im;
};

template <typename T>
HWY_INLINE Reals<T> SetReal(T value) {
  return hn::Set(Tag<T>(), value);
}

template <class N>
HWY_INLINE N Get(const typename N::Real* at) {
  const Tag<typename N::Real> d;
  if constexpr (N::kParts == 1) {
    return {hn::Load(d, at)};
  } else {
    return {hn::Load(d, at), hn::Load(d, at + hn::MaxLanes(d))};
  }
}

template <class N>
HWY_INLINE void Put(N x, typename N::Real* at) {
  const Tag<typename N::Real> d;
  hn::Store(x.re, d, at);
  if constexpr (N::kParts == 2) hn::Store(x.im, d, at + hn::MaxLanes(d));
}

template <class N>
HWY_INLINE N FromReal(Reals<typename N::Real> x) {
  if constexpr (N::kParts == 1) {
    return {x};
  } else {
    return {x, hn::Zero(Tag<typename N::Real>())};
  }
}

template <class N>
HWY_INLINE N AddToParts(N a, Reals<typename N::Real> b) {
  a.re = hn::Add(a.re, b);
  if constexpr (N::kParts == 2) a.im = hn::Add(a.im, b);
  return a;
}

template <class N>
HWY_INLINE N Constant(double value) {
  return FromReal<N>(SetReal(static_cast<typename N::Real>(value)));
}

template <class N>
HWY_INLINE N Conj(N x) {
  if constexpr (N::kParts == 2) x.im = hn::Neg(x.im);
  return x;
}

template <class N>
HWY_INLINE N Add(N a, N b) {
  a.re = hn::Add(a.re, b.re);
  if constexpr (N::kParts == 2) a.im = hn::Add(a.im, b.im);
  return a;
}

template <class N>
HWY_INLINE N Sub(N a, N b) {
  a.re = hn::Sub(a.re, b.re);
  if constexpr (N::kParts == 2) a.im = hn::Sub(a.im, b.im);
  return a;
}

// a·s of a real s.
template <class N>
HWY_INLINE N Scale(N a, Reals<typename N::Real> s) {
  a.re = hn::Mul(a.re, s);
  if constexpr (N::kParts == 2) a.im = hn::Mul(a.im, s);
  return a;
}

// c + a·b.
template <class N>
HWY_INLINE N MulAdd(N a, N b, N c) {
  c.re = hn::MulAdd(a.re, b.re, c.re);
  if constexpr (N::kParts == 2) {
    c.re = hn::NegMulAdd(a.im, b.im, c.re);
    c.im = hn::MulAdd(a.im, b.re, hn::MulAdd(a.re, b.im, c.im));
  }
  return c;
}

// c - a·b.
template <class N>
HWY_INLINE N NegMulAdd(N a, N b, N c) {
  c.re = hn::NegMulAdd(a.re, b.re, c.re);
  if constexpr (N::kParts == 2) {
    c.re = hn::MulAdd(a.im, b.im, c.re);
    c.im = hn::NegMulAdd(a.im, b.re, hn::NegMulAdd(a.re, b.im, c.im));
  }
  return c;
}

// c + conj(a)·b.
template <class N>
HWY_INLINE N ConjMulAdd(N a, N b, N c) {
  return MulAdd(Conj(a), b, c);
}

template <class N>
HWY_INLINE N Mul(N a, N b) {
  if constexpr (N::kParts == 1) {
    return {hn::Mul(a.re, b.re)};
  } else {
    return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
  }
}

// c + |a|².
template <class N>
HWY_INLINE Reals<typename N::Real> AddSquare(N a, Reals<typename N::Real> c) {
  c = hn::MulAdd(a.re, a.re, c);
  if constexpr (N::kParts == 2) c = hn::MulAdd(a.im, a.im, c);
  return c;
}

// |re| + |im|, by which LAPACK chooses pivots.
template <class N>
HWY_INLINE Reals<typename N::Real> Magnitude(N a) {
  if constexpr (N::kParts == 1) {
    return hn::Abs(a.re);
  } else {
    return hn::Add(hn::Abs(a.re), hn::Abs(a.im));
  }
}

template <class N>
HWY_INLINE Lanes<typename N::Real> IsZero(N a) {
  return hn::Eq(Magnitude(a), hn::Zero(Tag<typename N::Real>()));
}

template <class N>
HWY_INLINE N Select(Lanes<typename N::Real> mask, N yes, N no) {
  yes.re = hn::IfThenElse(mask, yes.re, no.re);
  if constexpr (N::kParts == 2) yes.im = hn::IfThenElse(mask, yes.im, no.im);
  return yes;
}

template <class N>
HWY_INLINE void SwapWhere(Lanes<typename N::Real> mask, typename N::Real* a, typename N::Real* b) {
  const N x = Get<N>(a), y = Get<N>(b);
  Put(Select(mask, y, x), a);
  Put(Select(mask, x, y), b);
}

// a / b; of complex numbers after R. L. Smith, Algorithm 116 (1962), so that |b|² need not be a number. Where a part is
// next to the largest number, a quarter of both is divided, so that no sum of two parts is infinite.
template <class N>
HWY_INLINE N Divide(N a, N b) {
  if constexpr (N::kParts == 1) {
    return {hn::Div(a.re, b.re)};
  } else {
    const auto swapped = hn::Lt(hn::Abs(b.re), hn::Abs(b.im));
    const auto large = hn::IfThenElse(swapped, b.im, b.re), small = hn::IfThenElse(swapped, b.re, b.im);
    const auto ratio = hn::Div(small, large);
    auto x = hn::IfThenElse(swapped, a.im, a.re), y = hn::IfThenElse(swapped, a.re, a.im);
    // (x + y·ratio) / d, and (a.im·large - a.re·small) / (large·d) with its sign turned where the parts are swapped.
    using T = typename N::Real;
    const auto largest = hn::Max(hn::Abs(large), hn::Max(hn::Abs(x), hn::Abs(y)));
    const auto is_huge = hn::Gt(largest, SetReal(std::numeric_limits<T>::max() / 4));
    const auto part = hn::IfThenElse(is_huge, SetReal(T(0.25)), SetReal(T(1)));
    x = hn::Mul(x, part), y = hn::Mul(y, part);
    const auto denominator = hn::MulAdd(hn::Mul(small, part), ratio, hn::Mul(large, part));
    const auto re = hn::Div(hn::MulAdd(y, ratio, x), denominator);
    const auto im = hn::Div(hn::NegMulAdd(x, ratio, y), denominator);
    return {re, hn::IfThenElse(swapped, hn::Neg(im), im)};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

#endif  // TENSORD_BACKENDS_CPU_LINALG_LANES_NUMBERS_INL_H_
