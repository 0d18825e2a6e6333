#include "backends/cpu/elementwise/loops.h"

#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/math/pragma.h"
#include "engine/ops/scalar/scalar_math.h"

// SSSE3 has no rounding instructions, and the compiler makes nothing of AVX3_DL.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/complex_modulus-inl.h"
#include "backends/cpu/math/complex_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class F, class... Candidates>
inline constexpr bool kIsOneOf = (std::is_same_v<F, Candidates> || ...);

// Tells whether a plain loop over the functor becomes vector code.
template <class F, class T>
constexpr bool Vectorises() {
  using namespace scalar;  // NOLINT: the names of the ops
  if constexpr (HalfElement<T>) {
    return false;
  } else if constexpr (kIsOneOf<F, Negate, Conj, RealPart, ImagPart, Not, Add, Subtract, Multiply, And, Or, Xor,
                                MakeComplex, Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual>) {
    return true;
  } else if constexpr (kIsOneOf<F, Abs>) {
    return true;
  } else if constexpr (kIsOneOf<F, Sign, Floor, Ceil, RoundNearestEven, IsFinite>) {
    return !ComplexElement<T>;
  } else if constexpr (kIsOneOf<F, Maximum, Minimum>) {
    return IntegerElement<T> || std::is_same_v<T, Bool>;
  } else if constexpr (kIsOneOf<F, Divide>) {
    return RealElement<T>;
  } else {
    return false;
  }
}

// In place the loop reads element i before it writes element i, so no iteration depends on another.
template <class F, class T>
void UnaryLoop(const void* a, const void* /*b*/, void* out, int64_t n) {
  using Result = decltype(F()(T()));
  const T* x = static_cast<const T*>(a);
  Result* y = static_cast<Result*>(out);
  TENSORD_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}

template <class F, class T>
void BinaryLoop(const void* a, const void* b, void* out, int64_t n) {
  using Result = decltype(F()(T(), T()));
  const T* x = static_cast<const T*>(a);
  const T* z = static_cast<const T*>(b);
  Result* y = static_cast<Result*>(out);
  TENSORD_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i], z[i]);
}

#if HWY_TARGET != HWY_SCALAR
template <typename R>
void ComplexProducts(const void* a, const void* b, void* out, int64_t n) {
  const R* x = static_cast<const R*>(a);
  const R* z = static_cast<const R*>(b);
  R* y = static_cast<R*>(out);
  const hn::ScalableTag<R> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= 2 * n; i += lanes) {
    hn::StoreU(ComplexProduct(d, hn::LoadU(d, x + i), hn::LoadU(d, z + i)), d, y + i);
  }
  if (i == 2 * n) return;
  HWY_ALIGN R rest_x[hn::MaxLanes(hn::ScalableTag<R>())] = {};
  HWY_ALIGN R rest_z[hn::MaxLanes(hn::ScalableTag<R>())] = {};
  const size_t rest_bytes = static_cast<size_t>(2 * n - i) * sizeof(R);
  std::memcpy(rest_x, x + i, rest_bytes);
  std::memcpy(rest_z, z + i, rest_bytes);
  hn::Store(ComplexProduct(d, hn::Load(d, rest_x), hn::Load(d, rest_z)), d, rest_x);
  std::memcpy(y + i, rest_x, rest_bytes);
}
#else
template <typename R>
void ComplexProducts(const void* a, const void* b, void* out, int64_t n) {
  BinaryLoop<scalar::Multiply, std::complex<R>>(a, b, out, n);
}
#endif

template <class F, class T>
constexpr ElementwiseFunction Entry() {
  if constexpr (!Vectorises<F, T>()) {
    return nullptr;
  } else if constexpr (std::is_same_v<F, scalar::Multiply> && ComplexElement<T>) {
    return &ComplexProducts<typename T::value_type>;
  } else if constexpr (std::is_same_v<F, scalar::Abs> && ComplexElement<T>) {
    return &ComplexModuli<typename T::value_type>;
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
