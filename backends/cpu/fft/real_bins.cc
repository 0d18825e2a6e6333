#include "backends/cpu/fft/real_bins.h"

#include <algorithm>
#include <cstdint>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fft/real_bins.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A vector of complex numbers. No operation is fused, so that a bin's bits do not depend on the start of a vector.
template <class V>
struct ComplexVector {
  V r, i;
};

template <class V>
HWY_INLINE ComplexVector<V> Product(ComplexVector<V> a, ComplexVector<V> b) {
  return {hn::Sub(hn::Mul(a.r, b.r), hn::Mul(a.i, b.i)), hn::Add(hn::Mul(a.r, b.i), hn::Mul(a.i, b.r))};
}

// A tag of as many lanes as a vector of doubles has.
template <typename T>
using LanesTag = hn::Rebind<T, hn::ScalableTag<double>>;

template <class D>
HWY_INLINE ComplexVector<hn::Vec<D>> LoadNumbers(D d, const hn::TFromD<D>* from) {
  ComplexVector<hn::Vec<D>> numbers{hn::Zero(d), hn::Zero(d)};
  hn::LoadInterleaved2(d, from, numbers.r, numbers.i);
  return numbers;
}

// Loads the numbers at `from` and before it, in reverse.
template <class D>
HWY_INLINE ComplexVector<hn::Vec<D>> LoadMirrored(D d, const hn::TFromD<D>* from) {
  const auto numbers = LoadNumbers(d, from - 2 * (hn::Lanes(d) - 1));
  return {hn::Reverse(d, numbers.r), hn::Reverse(d, numbers.i)};
}

template <class D, class V>
HWY_INLINE void StoreMirrored(D d, ComplexVector<V> numbers, hn::TFromD<D>* to) {
  hn::StoreInterleaved2(hn::Reverse(d, numbers.r), hn::Reverse(d, numbers.i), d, to - 2 * (hn::Lanes(d) - 1));
}

// Root k and those behind it, of one entry of the coarse table.
template <class D>
HWY_INLINE ComplexVector<hn::Vec<D>> RootsAt(D d, const FftRoots& roots, int64_t k) {
  const hn::Rebind<double, D> wide;
  const FftRoot coarse = roots.CoarseOf(k);
  const auto w = Product(LoadNumbers(wide, &roots.FineOf(k)->r), {hn::Set(wide, coarse.r), hn::Set(wide, coarse.i)});
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(double)) {
    return w;
  } else {
    return {hn::DemoteTo(d, w.r), hn::DemoteTo(d, w.i)};
  }
}

// Turns two numbers that mirror each other into bins, by the root at the first.
struct ToBins {
  bool conjugate;

  template <class D, class V>
  HWY_INLINE void operator()(D d, ComplexVector<V> w, ComplexVector<V>* a, ComplexVector<V>* b) const {
    const V half = hn::Set(d, hn::TFromD<D>(0.5));
    const ComplexVector<V> even{hn::Mul(hn::Add(a->r, b->r), half), hn::Mul(hn::Sub(a->i, b->i), half)};
    const ComplexVector<V> odd{hn::Mul(hn::Add(a->i, b->i), half), hn::Mul(hn::Sub(b->r, a->r), half)};
    const ComplexVector<V> turned = Product(odd, {w.r, hn::Neg(w.i)});
    *a = {hn::Add(even.r, turned.r), hn::Add(even.i, turned.i)};
    *b = {hn::Sub(even.r, turned.r), hn::Sub(turned.i, even.i)};
    if (!conjugate) return;
    a->i = hn::Neg(a->i);
    b->i = hn::Neg(b->i);
  }
};

struct FromBins {
  template <class D, class V>
  HWY_INLINE void operator()(D /*d*/, ComplexVector<V> w, ComplexVector<V>* a, ComplexVector<V>* b) const {
    const ComplexVector<V> even{hn::Add(a->r, b->r), hn::Sub(a->i, b->i)};
    const ComplexVector<V> turned = Product({hn::Sub(a->r, b->r), hn::Add(a->i, b->i)}, w);
    *a = {hn::Sub(even.r, turned.i), hn::Add(even.i, turned.r)};
    *b = {hn::Add(even.r, turned.i), hn::Sub(turned.r, even.i)};
  }
};

template <class D, typename T, class Pair>
HWY_INLINE void TakePair(D d, const T* in, int64_t half, const FftRoots& roots, int64_t k, const Pair& pair, T* out) {
  auto a = LoadNumbers(d, in + 2 * k), b = LoadMirrored(d, in + 2 * (half - k));
  pair(d, RootsAt(d, roots, k), &a, &b);
  hn::StoreInterleaved2(a.r, a.i, d, out + 2 * k);
  StoreMirrored(d, b, out + 2 * (half - k));
}

template <typename T, class Pair>
HWY_INLINE void TakePairs(const T* in, int64_t half, const FftRoots& roots, int64_t begin, int64_t end,
                          const Pair& pair, T* out) {
  const LanesTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  while (begin < end) {
    // Until the fine roots begin again.
    const int64_t stop = std::min(end, roots.NextCoarse(begin));
    for (; begin + lanes <= stop; begin += lanes) TakePair(d, in, half, roots, begin, pair, out);
    for (; begin < stop; ++begin) TakePair(one, in, half, roots, begin, pair, out);
  }
}

void BinsOfF32(const float* z, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, bool conjugate,
               float* bins) {
  TakePairs(z, half, roots, begin, end, ToBins{conjugate}, bins);
}
void BinsOfF64(const double* z, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, bool conjugate,
               double* bins) {
  TakePairs(z, half, roots, begin, end, ToBins{conjugate}, bins);
}
void HalvesOfF32(const float* bins, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, float* z) {
  TakePairs(bins, half, roots, begin, end, FromBins(), z);
}
void HalvesOfF64(const double* bins, int64_t half, const FftRoots& roots, int64_t begin, int64_t end, double* z) {
  TakePairs(bins, half, roots, begin, end, FromBins(), z);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(BinsOfF32);
HWY_EXPORT(BinsOfF64);
HWY_EXPORT(HalvesOfF32);
HWY_EXPORT(HalvesOfF64);

template <>
void BinsFromHalves<float>(const float* z, int64_t half, const FftRoots& roots, int64_t begin, int64_t end,
                           bool conjugate, float* bins) {
  HWY_DYNAMIC_DISPATCH(BinsOfF32)(z, half, roots, begin, end, conjugate, bins);
}
template <>
void BinsFromHalves<double>(const double* z, int64_t half, const FftRoots& roots, int64_t begin, int64_t end,
                            bool conjugate, double* bins) {
  HWY_DYNAMIC_DISPATCH(BinsOfF64)(z, half, roots, begin, end, conjugate, bins);
}
template <>
void HalvesFromBins<float>(const float* bins, int64_t half, const FftRoots& roots, int64_t begin, int64_t end,
                           float* z) {
  HWY_DYNAMIC_DISPATCH(HalvesOfF32)(bins, half, roots, begin, end, z);
}
template <>
void HalvesFromBins<double>(const double* bins, int64_t half, const FftRoots& roots, int64_t begin, int64_t end,
                            double* z) {
  HWY_DYNAMIC_DISPATCH(HalvesOfF64)(bins, half, roots, begin, end, z);
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
