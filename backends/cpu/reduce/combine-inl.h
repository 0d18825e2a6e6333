// Vectors that a reduction combines. Included once per instruction set.

#if defined(TENSORD_BACKENDS_CPU_REDUCE_COMBINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_REDUCE_COMBINE_INL_H_
#undef TENSORD_BACKENDS_CPU_REDUCE_COMBINE_INL_H_
#else
#define TENSORD_BACKENDS_CPU_REDUCE_COMBINE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int64_t kVirtualBytes = 64;  // of what one short run is folded into, on every instruction set

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

template <typename T>
using RunTag = hn::CappedTag<T, kVirtualBytes / sizeof(T)>;
template <typename T>
inline constexpr int kRunLanes = static_cast<int>(hn::MaxLanes(RunTag<T>()));

// The hardware's maximum is wrong about NaN and about zeros of both signs. It is right if there is no NaN and the
// result is no zero. The sum tells the former: it is NaN if a term is.
template <typename Op, typename T>
inline constexpr bool kNeedsProof = std::is_floating_point_v<T> && (Op::kIsMax || Op::kIsMin);

template <typename Op, class D, class V>
HWY_INLINE V CombineVectors(D d, V a, V b) {
  (void)d;
  if constexpr (Op::kIsMax) {
    return hn::Max(a, b);
  } else if constexpr (Op::kIsMin) {
    return hn::Min(a, b);
  } else if constexpr (Op::kIsProduct) {
    return hn::Mul(a, b);
  } else {
    return hn::Add(a, b);
  }
}

template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* x, int64_t count, T otherwise) {
  const auto mask = hn::FirstN(d, static_cast<size_t>(count));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x), hn::Set(d, otherwise));  // reads nothing beyond them
#else
  alignas(64) T buffer[hn::MaxLanes(d)] = {};
  std::copy(x, x + count, buffer);
  return hn::IfThenElse(mask, hn::Load(d, buffer), hn::Set(d, otherwise));
#endif
}

// Returns the lanes of a vector, its halves combined, then theirs.
template <typename Op, class D>
HWY_INLINE hn::TFromD<D> FoldVector(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return FoldVector<Op>(half, CombineVectors<Op>(half, hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

#endif  // not for scalars

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
