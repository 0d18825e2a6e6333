#include "backends/cpu/indexing/scatter_loops.h"

#include "backends/cpu/math/pragma.h"
#include "engine/ops/scalar/scalar_math.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/indexing/scatter_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/complex_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Second {
  template <typename T>
  HWY_INLINE T operator()(T, T b) const {
    return b;
  }
};
template <typename F>
struct Applied {
  template <typename T>
  HWY_INLINE T operator()(T a, T b) const {
    return scalar::Apply(F{}, a, b);
  }
};

template <typename F, typename T>
void Row(void* dst, const void* updates, int64_t count, int64_t dst_step, int64_t update_step) {
  T* HWY_RESTRICT into = static_cast<T*>(dst);
  const T* HWY_RESTRICT from = static_cast<const T*>(updates);
  if (dst_step == 1 && update_step == 1) {
    TENSORD_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) into[i] = F{}(into[i], from[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) into[i * dst_step] = F{}(into[i * dst_step], from[i * update_step]);
  }
}

template <typename F, typename T>
void Each(void* dst, const void* updates, const int64_t* into, const int64_t* from, int64_t count) {
  T* const to = static_cast<T*>(dst);
  const T* const taken = static_cast<const T*>(updates);
  for (int64_t i = 0; i < count; ++i) to[into[i]] = F{}(to[into[i]], taken[from[i]]);
}

#if HWY_TARGET != HWY_SCALAR
// Complex factors, one pair or, where they lie side by side, a vector of pairs at a time: an element has the same bits
// wherever it stands.
template <typename R>
void ComplexEach(void* dst, const void* updates, const int64_t* into, const int64_t* from, int64_t count) {
  R* const to = static_cast<R*>(dst);
  const R* const taken = static_cast<const R*>(updates);
  const hn::CappedTag<R, 2> pair;
  for (int64_t i = 0; i < count; ++i) {
    R* const at = to + 2 * into[i];
    hn::StoreU(ComplexProduct(pair, hn::LoadU(pair, at), hn::LoadU(pair, taken + 2 * from[i])), pair, at);
  }
}

template <typename R>
void ComplexRow(void* dst, const void* updates, int64_t count, int64_t dst_step, int64_t update_step) {
  R* const to = static_cast<R*>(dst);
  const R* const taken = static_cast<const R*>(updates);
  const hn::CappedTag<R, 2> pair;
  const hn::ScalableTag<R> d;
  const int64_t pairs = static_cast<int64_t>(hn::Lanes(d)) / 2;
  int64_t i = 0;
  for (; dst_step == 1 && update_step == 1 && i + pairs <= count; i += pairs) {
    hn::StoreU(ComplexProduct(d, hn::LoadU(d, to + 2 * i), hn::LoadU(d, taken + 2 * i)), d, to + 2 * i);
  }
  for (; i < count; ++i) {
    R* const at = to + 2 * i * dst_step;
    hn::StoreU(ComplexProduct(pair, hn::LoadU(pair, at), hn::LoadU(pair, taken + 2 * i * update_step)), pair, at);
  }
}
#endif

template <typename F>
ScatterLoops LoopsOf(DType dtype) {
  return VisitDType(dtype, [&]<typename T>(TypeTag<T>) { return ScatterLoops{&Row<F, T>, &Each<F, T>}; });
}

ScatterLoops Loops(ScatterCombiner combiner, DType dtype) {
  switch (combiner) {
    case ScatterCombiner::kAdd:
      return LoopsOf<Applied<scalar::Add>>(dtype);
    case ScatterCombiner::kSet:
      return LoopsOf<Second>(dtype);
    case ScatterCombiner::kMultiply:
#if HWY_TARGET != HWY_SCALAR
      if (dtype == DType::kC64) return {&ComplexRow<float>, &ComplexEach<float>};
      if (dtype == DType::kC128) return {&ComplexRow<double>, &ComplexEach<double>};
#endif
      return LoopsOf<Applied<scalar::Multiply>>(dtype);
    case ScatterCombiner::kMinimum:
      return LoopsOf<Applied<scalar::Minimum>>(dtype);
    case ScatterCombiner::kMaximum:
      return LoopsOf<Applied<scalar::Maximum>>(dtype);
  }
  return {};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(Loops);

ScatterLoops GetScatterLoops(ScatterCombiner combiner, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(Loops)(combiner, dtype);
}

}  // namespace tensord::cpu
#endif
