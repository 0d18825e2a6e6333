#ifndef TENSORD_ENGINE_OPS_SEMIRING_H_
#define TENSORD_ENGINE_OPS_SEMIRING_H_

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/ops/scalar/scalar_math.h"
#include "engine/tensor/dtype.h"

namespace tensord {

// The other algebras, an element at a time. max_plus: maximum and +, min_plus: minimum and +, max_times: maximum and ·,
// over numbers of at least 0; or_and: or and and, of BOOL. The sum is the ops' maximum or minimum, so NaN wins; the
// product of floats is IEEE's, rounded once.
//
// Integers have no infinity: in max_plus the least, in min_plus the greatest one is the zero, which absorbs in
// products. Other products saturate.

// The names by the numbers of Algebra and of the wire.
inline constexpr absl::string_view kAlgebraNames[] = {"standard", "max_plus", "min_plus", "max_times", "or_and"};

// Returns the dtypes of the elements of an algebra.
constexpr DTypeSet ElementsOf(Algebra algebra) {
  switch (algebra) {
    case Algebra::kStandard:
      return kAnyDType;
    case Algebra::kOrAnd:
      return kBoolOnly;
    default:
      return kIntegers | kFloats;
  }
}

// Returns the algebra of an op that has one of its own, such as a dot_general; the standard one if it is unset.
inline Algebra AlgebraOf(const Attributes& attrs) { return static_cast<Algebra>(attrs.Int("algebra")); }

// Refuses operands that are no elements of the algebra. DTYPE_UNSUPPORTED.
absl::Status CheckElements(Algebra algebra, DType operands);

// Tells whether T is an element of any algebra but the standard one.
template <typename T>
concept SemiringElement = std::same_as<T, Bool> || IntegerElement<T> || RealElement<T> || HalfElement<T>;

// Returns the neutral element of the sum.
template <typename T>
T SemiringZero(Algebra algebra) {
  if constexpr (!SemiringElement<T> || std::is_same_v<T, Bool>) {
    return T();
  } else if constexpr (IntegerElement<T>) {
    if (algebra == Algebra::kMaxPlus) return std::numeric_limits<T>::min();
    return algebra == Algebra::kMinPlus ? std::numeric_limits<T>::max() : T(0);
  } else {
    const auto infinity = std::numeric_limits<scalar::ComputeType<T>>::infinity();
    if (algebra == Algebra::kMaxPlus) return T(-infinity);
    return algebra == Algebra::kMinPlus ? T(infinity) : T();
  }
}

template <typename T>
T SemiringAdd(Algebra algebra, T a, T b) {
  if constexpr (!SemiringElement<T>) {
    return T();
  } else {
    return algebra == Algebra::kMinPlus ? scalar::Apply(scalar::Minimum{}, a, b)
                                        : scalar::Apply(scalar::Maximum{}, a, b);
  }
}

// Returns x + y, held between the least and the greatest integer.
template <IntegerElement T>
T SaturatedSum(T x, T y) {
  T sum;
  if (!__builtin_add_overflow(x, y, &sum)) return sum;
  return x < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
}

template <typename T>
T SemiringMultiply(Algebra algebra, T a, T b) {
  if constexpr (!SemiringElement<T>) {
    return T();
  } else {
    if (algebra == Algebra::kMaxTimes || algebra == Algebra::kOrAnd) return scalar::Apply(scalar::Multiply{}, a, b);
    if constexpr (IntegerElement<T>) {
      const T zero = SemiringZero<T>(algebra);
      return a == zero || b == zero ? zero : SaturatedSum(a, b);
    } else {
      return scalar::Apply(scalar::Add{}, a, b);
    }
  }
}

}  // namespace tensord

#endif  // TENSORD_ENGINE_OPS_SEMIRING_H_
