#include "backends/cpu/reduce/first_extreme_loops.h"

#include <cmath>
#include <cstddef>
#include <type_traits>

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/reduce/first_extreme_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kGreatest, class V>
HWY_INLINE V Better(V a, V b) {
  return kGreatest ? hn::Max(a, b) : hn::Min(a, b);
}

// Comparisons of a number with itself are ordered ones on some instruction sets, and tell no NaN.
template <class D>
HWY_INLINE hn::Mask<D> IsNoNumber(D d, hn::Vec<D> v) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    (void)d;
    return hn::IsNaN(v);
  } else {
    return hn::MaskFromVec(hn::Zero(d));
  }
}

template <bool kGreatest, typename T>
bool Wins(const void* a, const void* b) {
  const T x = *static_cast<const T*>(a), y = *static_cast<const T*>(b);
  return kGreatest ? x > y : x < y;
}

template <bool kGreatest, typename T>
bool Extreme(const void* x_bytes, int64_t n, void* value) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<hn::ScalableTag<T>>;
  const T* x = static_cast<const T*>(x_bytes);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  T best = x[0];
  bool nan = best != best;
  int64_t i = 0;
  if (n >= lanes) {
    constexpr int kChains = 4;  // maxima at once, so that one need not wait for the one before
    V chains[kChains];
    for (V& chain : chains) chain = hn::LoadU(d, x);
    auto unordered = IsNoNumber(d, chains[0]);
    // The next page is asked for while this one is read, which the processor does not do by itself.
    constexpr int64_t kAhead = 4096 / static_cast<int64_t>(sizeof(T));
    const auto take = [&](int chain, int64_t at) HWY_ATTR {
      __builtin_prefetch(x + at + kAhead);
      const V v = hn::LoadU(d, x + at);
      chains[chain] = Better<kGreatest>(v, chains[chain]);
      if constexpr (std::is_floating_point_v<T>) unordered = hn::Or(unordered, IsNoNumber(d, v));
    };
    for (; i + kChains * lanes <= n; i += kChains * lanes) {
      take(0, i);
      take(1, i + lanes);
      take(2, i + 2 * lanes);
      take(3, i + 3 * lanes);
    }
    for (; i + lanes <= n; i += lanes) take(0, i);
    if (i < n) take(1, n - lanes);
    i = n;
    const V all = Better<kGreatest>(Better<kGreatest>(chains[0], chains[1]), Better<kGreatest>(chains[2], chains[3]));
    HWY_ALIGN T folded[hn::MaxLanes(hn::ScalableTag<T>())];
    hn::Store(all, d, folded);
    best = folded[0];
    for (int64_t k = 1; k < lanes; ++k) {
      if (Wins<kGreatest, T>(&folded[k], &best)) best = folded[k];
    }
    nan = !hn::AllFalse(d, unordered);
  }
  for (; i < n; ++i) {
    nan = nan || x[i] != x[i];
    if (Wins<kGreatest, T>(&x[i], &best)) best = x[i];
  }
  *static_cast<T*>(value) = best;
  return nan;
}

template <typename T>
int64_t Find(const void* x_bytes, int64_t n, const void* value, bool nan) {
  const hn::ScalableTag<T> d;
  const T* x = static_cast<const T*>(x_bytes);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const T sought = *static_cast<const T*>(value);
  const auto all = hn::Set(d, sought);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto found = nan ? IsNoNumber(d, v) : hn::Eq(v, all);
    if (!hn::AllFalse(d, found)) return i + static_cast<int64_t>(hn::FindFirstTrue(d, found));
  }
  for (; i < n; ++i) {
    if (nan ? x[i] != x[i] : x[i] == sought) return i;
  }
  return n;
}

template <bool kGreatest, typename T>
FirstExtremeLoops LoopsOf() {
  return {&Extreme<kGreatest, T>, &Wins<kGreatest, T>, &Find<T>};
}

template <bool kGreatest>
FirstExtremeLoops LoopsFor(DType dtype) {
  switch (dtype) {
    case DType::kI32:
      return LoopsOf<kGreatest, int32_t>();
    case DType::kI64:
      return LoopsOf<kGreatest, int64_t>();
    case DType::kF32:
      return LoopsOf<kGreatest, float>();
    case DType::kF64:
      return LoopsOf<kGreatest, double>();
    default:
      return {};
  }
}

FirstExtremeLoops ExtremeLoops(bool greatest, DType dtype) {
  return greatest ? LoopsFor<true>(dtype) : LoopsFor<false>(dtype);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(ExtremeLoops);

FirstExtremeLoops GetFirstExtremeLoops(bool greatest, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(ExtremeLoops)(greatest, dtype);
}

}  // namespace tensord::cpu
#endif  // HWY_ONCE
