#include "backends/cpu/elementwise_loops.h"

#include <cstdint>
#include <type_traits>

#include "engine/ops/scalar_math.h"

// SSSE3 has no rounding instructions, and the compiler makes nothing of AVX3_DL.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class F, class... Candidates>
inline constexpr bool kIsOneOf = (std::is_same_v<F, Candidates> || ...);

// Whether a plain loop over the functor becomes vector code.
template <class F, class T>
constexpr bool Vectorises() {
  using namespace scalar;  // NOLINT: the names of the ops
  if constexpr (HalfElement<T>) {
    return false;
  } else if constexpr (kIsOneOf<F, Negate, Conj, RealPart, ImagPart, Not, Add, Subtract, Multiply, And,
                                Or, Xor, MakeComplex, Equal, NotEqual, Less, LessEqual, Greater,
                                GreaterEqual>) {
    return true;
  } else if constexpr (kIsOneOf<F, Abs, Sign, Floor, Ceil, RoundNearestEven, IsFinite>) {
    return !ComplexElement<T>;
  } else if constexpr (kIsOneOf<F, Maximum, Minimum>) {
    return IntegerElement<T> || std::is_same_v<T, Bool>;
  } else if constexpr (kIsOneOf<F, Divide>) {
    return RealElement<T>;
  } else {
    return false;
  }
}

// In place the loop reads element i before it writes element i, so vectors may overlap only themselves: ivdep says that.
template <class F, class T>
void UnaryLoop(const void* a, const void* /*b*/, void* out, int64_t n) {
  using Result = decltype(F()(T()));
  const T* x = static_cast<const T*>(a);
  Result* y = static_cast<Result*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

template <class F, class T>
void BinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  using Result = decltype(F()(T(), T()));
  const T* x = static_cast<const T*>(a);
  const T* z = static_cast<const T*>(b);
  Result* y = static_cast<Result*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i], z[i]);
}

template <class F, class T>
constexpr ElementwiseFunction Entry() {
  if constexpr (!Vectorises<F, T>()) {
    return nullptr;
  } else if constexpr (scalar::Takes<F, T>) {
    return &UnaryLoop<F, T>;
  } else if constexpr (scalar::Takes<F, T, T>) {
    return &BinaryLoop<F, T>;
  } else {
    return nullptr;
  }
}

template <class F>
constexpr ElementwiseRow Row() {
  return {nullptr,
          Entry<F, Bool>(),
          Entry<F, int32_t>(),
          Entry<F, int64_t>(),
          Entry<F, float>(),
          Entry<F, double>(),
          Entry<F, Complex64>(),
          Entry<F, Complex128>(),
          nullptr,
          nullptr};
}

constexpr ElementwiseLoops kLoops = {
    {
#define TENSORD_UNARY(op, name, functor, summary) Row<scalar::functor>(),
#define TENSORD_BINARY(op, name, functor, traits, summary) Row<scalar::functor>(),
#define TENSORD_OP(op, definition) ElementwiseRow{},
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
    },
    {ElementwiseRow{}, Row<scalar::Equal>(), Row<scalar::NotEqual>(), Row<scalar::Less>(), Row<scalar::LessEqual>(),
     Row<scalar::Greater>(), Row<scalar::GreaterEqual>()}};

const ElementwiseLoops* Loops() { return &kLoops; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(Loops);

const ElementwiseLoops& GetElementwiseLoops() { return *HWY_DYNAMIC_DISPATCH(Loops)(); }

}  // namespace tensord::cpu
#endif
