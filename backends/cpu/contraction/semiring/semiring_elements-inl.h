// Sums and products of elements of other algebras, a vector at a time.
#if defined(TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_ELEMENTS_INL_H_
#undef TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_ELEMENTS_INL_H_
#else
#define TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_ELEMENTS_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/ir/graph.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Elements that a scan finds.
constexpr uint32_t kHasNaN = 1;
constexpr uint32_t kHasFirst = 2;   // +infinity, in min_plus -infinity; an infinity in max_times
constexpr uint32_t kHasSecond = 4;  // the opposite infinity, or there may be one; a zero in max_times
constexpr uint32_t kHasZero = 8;    // the zero of integers
constexpr uint32_t kHasFar = 16;    // integers whose sums may not be told from sums with a stand-in

constexpr bool IsMinimum(Algebra algebra) { return algebra == Algebra::kMinPlus; }

// A factor that many elements are multiplied by.
template <class V>
struct PlainFactor {
  V value;
};

// Floats. Vectors' own maximum does not keep NaN, so fast loops take operands whose products are none. To find out,
// loops add up the elements that go by: the sum of any NaN or infinity of the first kind is not below infinity.
template <typename T, Algebra kAlgebra>
struct Floats {
  static constexpr bool kHasCare = true;
  static constexpr bool kIsWatched = true;
  static T Zero() {
    if (kAlgebra == Algebra::kMaxTimes) return T(0);
    const T infinity = std::numeric_limits<T>::infinity();
    return IsMinimum(kAlgebra) ? infinity : -infinity;
  }

  template <bool kCare, class V>
  static HWY_INLINE PlainFactor<V> MakeFactor(V b) {
    return {b};
  }
  template <bool kCare, class V>
  static HWY_INLINE V AddProduct(V sum, V a, const PlainFactor<V>& factor) {
    const V product = kAlgebra == Algebra::kMaxTimes ? hn::Mul(a, factor.value) : hn::Add(a, factor.value);
    if constexpr (kCare) return AddSums(sum, product);
    return IsMinimum(kAlgebra) ? hn::Min(sum, product) : hn::Max(sum, product);
  }
  // A number that is NaN is not beyond the sum, and so it is taken.
  template <class V>
  static HWY_INLINE V AddSums(V sum, V x) {
    const auto stays = IsMinimum(kAlgebra) ? hn::Le(sum, x) : hn::Ge(sum, x);
    return hn::IfThenElse(hn::Or(stays, hn::IsNaN(sum)), sum, x);
  }
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    return sum;
  }

  // Tells whether elements with this sum make no NaN: there is none, and no infinity of the first kind.
  template <class D, class V>
  static HWY_INLINE bool IsSafe(D d, V sum) {
    const V most = hn::Set(d, std::numeric_limits<T>::max());
    if (kAlgebra == Algebra::kMaxTimes) return hn::AllTrue(d, hn::Le(hn::Abs(sum), most));
    return hn::AllTrue(d, IsMinimum(kAlgebra) ? hn::Ge(sum, hn::Neg(most)) : hn::Le(sum, most));
  }
  template <class D, class V>
  static HWY_INLINE uint32_t Scan(D d, V x) {
    const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
    const bool times = kAlgebra == Algebra::kMaxTimes;
    const auto first =
        times ? hn::Eq(hn::Abs(x), infinity) : hn::Eq(x, IsMinimum(kAlgebra) ? hn::Neg(infinity) : infinity);
    const auto second = times ? hn::Eq(x, hn::Zero(d)) : hn::Eq(x, IsMinimum(kAlgebra) ? infinity : hn::Neg(infinity));
    const auto has = [&](hn::Mask<D> mask) HWY_ATTR { return !hn::AllFalse(d, mask); };
    return (has(hn::IsNaN(x)) ? kHasNaN : 0u) | (has(first) ? kHasFirst : 0u) | (has(second) ? kHasSecond : 0u);
  }
  static bool NeedsCare(uint32_t a, uint32_t b) {
    const bool meet =
        ((a & kHasFirst) != 0 && (b & kHasSecond) != 0) || ((a & kHasSecond) != 0 && (b & kHasFirst) != 0);
    return meet || ((a | b) & kHasNaN) != 0;
  }
  static bool NeedsStandIn(uint32_t, uint32_t) { return false; }
  template <class D, class V>
  static HWY_INLINE V WithStandIn(D, V x) {
    return x;
  }
};

// A factor with the least and the greatest element that may be added to it.
template <class V>
struct BoundedFactor {
  V value;
  V least;
  V greatest;
};

// Integers. If all numbers are below an eighth of the greatest one, no sum of two wraps around, and a stand-in of half
// the least one for the zero keeps sums with it apart from all others.
template <typename T, Algebra kAlgebra>
struct Integers {
  static constexpr bool kHasCare = kAlgebra != Algebra::kMaxTimes;
  static constexpr bool kIsWatched = false;
  static constexpr T kLeast = std::numeric_limits<T>::min(), kGreatest = std::numeric_limits<T>::max();
  static constexpr T kFar = kGreatest / 8;
  static constexpr T kStandIn = IsMinimum(kAlgebra) ? kGreatest / 2 : kLeast / 2;
  static T Zero() {
    if (kAlgebra == Algebra::kMaxTimes) return T(0);
    return IsMinimum(kAlgebra) ? kGreatest : kLeast;
  }

  // With care: the bounds hold sums between the least and the greatest integer. The zero is only added to 0, which
  // gives the zero.
  template <bool kCare, class V>
  static HWY_INLINE auto MakeFactor(V b) {
    if constexpr (!kCare) {
      return PlainFactor<V>{b};
    } else {
      const hn::DFromV<V> d;
      const V nothing = hn::Zero(d);
      const auto is_zero = hn::Eq(b, hn::Set(d, Zero()));
      const V least = hn::Sub(hn::Set(d, kLeast), hn::Min(b, nothing));
      const V greatest = hn::Sub(hn::Set(d, kGreatest), hn::Max(b, nothing));
      return BoundedFactor<V>{b, hn::IfThenElse(is_zero, nothing, least), hn::IfThenElse(is_zero, nothing, greatest)};
    }
  }
  template <bool kCare, class V, class Factor>
  static HWY_INLINE V AddProduct(V sum, V a, const Factor& factor) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) {
      return AddSums(sum, hn::Mul(a, factor.value));
    } else if constexpr (!kCare) {
      return AddSums(sum, hn::Add(a, factor.value));
    } else {
      const hn::DFromV<V> d;
      const V held = hn::Min(hn::Max(a, factor.least), factor.greatest);
      return hn::IfThenElse(hn::Eq(a, hn::Set(d, Zero())), sum, AddSums(sum, hn::Add(held, factor.value)));
    }
  }
  template <class V>
  static HWY_INLINE V AddSums(V sum, V x) {
    return IsMinimum(kAlgebra) ? hn::Min(sum, x) : hn::Max(sum, x);
  }
  // Sums of products with the stand-in alone are the zero.
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return sum;
    const hn::DFromV<V> d;
    const auto absorbed =
        IsMinimum(kAlgebra) ? hn::Gt(sum, hn::Set(d, T(2 * kFar))) : hn::Lt(sum, hn::Set(d, T(-2 * kFar)));
    return hn::IfThenElse(absorbed, hn::Set(d, Zero()), sum);
  }

  template <class D, class V>
  static HWY_INLINE uint32_t Scan(D d, V x) {
    if constexpr (kAlgebra == Algebra::kMaxTimes) return 0;
    const auto zero = hn::Eq(x, hn::Set(d, Zero()));
    const auto far = hn::Or(hn::Lt(x, hn::Set(d, T(-kFar))), hn::Gt(x, hn::Set(d, kFar)));
    if (hn::AllFalse(d, far)) return 0;
    return (hn::AllFalse(d, zero) ? 0u : kHasZero) | (hn::AllFalse(d, hn::AndNot(zero, far)) ? 0u : kHasFar);
  }
  static bool NeedsCare(uint32_t a, uint32_t b) { return ((a | b) & kHasFar) != 0; }
  static bool NeedsStandIn(uint32_t a, uint32_t b) { return ((a | b) & kHasZero) != 0; }
  // Numbers beyond the stand-in need care.
  template <class D, class V>
  static HWY_INLINE V WithStandIn(D d, V x) {
    const V stand_in = hn::Set(d, kStandIn);
    return IsMinimum(kAlgebra) ? hn::Min(x, stand_in) : hn::Max(x, stand_in);
  }
};

// Words of 64 rows, or bytes that are 0 or 1.
template <typename T>
struct Bits {
  static constexpr bool kHasCare = false;
  static constexpr bool kIsWatched = false;
  static T Zero() { return 0; }
  template <bool kCare, class V>
  static HWY_INLINE PlainFactor<V> MakeFactor(V b) {
    return {b};
  }
  template <bool kCare, class V>
  static HWY_INLINE V AddProduct(V sum, V a, const PlainFactor<V>& factor) {
    return hn::OrAnd(sum, a, factor.value);
  }
  template <class V>
  static HWY_INLINE V AddSums(V sum, V x) {
    return hn::Or(sum, x);
  }
  template <class V>
  static HWY_INLINE V Finished(V sum) {
    return sum;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#endif  // TENSORD_BACKENDS_CPU_CONTRACTION_SEMIRING_SEMIRING_ELEMENTS_INL_H_
