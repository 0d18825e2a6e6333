#ifndef TENSORD_TESTS_UNIT_BACKENDS_CUDA_ABI_SAME_ABI_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CUDA_ABI_SAME_ABI_H_

#include <type_traits>

namespace tensord::cuda {

template <typename T>
inline constexpr bool kIsNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// True if a call may pass A where B is declared: the same size and kind. Of pointers: to numbers of the same size and
// kind, or to what is opaque on a side, and both to what may be written or neither.
template <typename A, typename B>
constexpr bool SameArgument() {
  if constexpr (std::is_pointer_v<A> != std::is_pointer_v<B>) {
    return false;
  } else if constexpr (std::is_pointer_v<A>) {
    using P = std::remove_pointer_t<A>;
    using Q = std::remove_pointer_t<B>;
    if constexpr (std::is_const_v<P> != std::is_const_v<Q>) {
      return false;
    } else if constexpr (std::is_pointer_v<P> && std::is_pointer_v<Q>) {
      return SameArgument<std::remove_cv_t<P>, std::remove_cv_t<Q>>();
    } else if constexpr (std::is_pointer_v<P> || std::is_pointer_v<Q>) {
      return false;
    } else if constexpr (kIsNumber<P> && kIsNumber<Q>) {
      return sizeof(P) == sizeof(Q) && std::is_floating_point_v<P> == std::is_floating_point_v<Q>;
    } else {
      return true;
    }
  } else if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else {
    return sizeof(A) == sizeof(B) && kIsNumber<A> == kIsNumber<B> &&
           std::is_floating_point_v<A> == std::is_floating_point_v<B>;
  }
}

template <typename A, typename B>
struct SameFunction : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameFunction<R(A...), S(B...)>
    : std::bool_constant<SameArgument<R, S>() && (SameArgument<A, B>() && ...)> {
};

}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CUDA_ABI_SAME_ABI_H_
