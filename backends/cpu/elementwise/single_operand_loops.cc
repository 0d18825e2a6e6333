#include "backends/cpu/elementwise/single_operand_loops.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/math/pragma.h"
#include "engine/ops/scalar/scalar_math.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/single_operand_loops.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/integer_quotients-inl.h"
#include "backends/cpu/math/vector_math_order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

// In place the loop reads element i before it writes element i.
template <class F, class T, bool kSingleA>
void SingleLoop(const void* a, const void* b, void* out, int64_t n) {
  using Result = decltype(F()(T(), T()));
  const T one = *static_cast<const T*>(kSingleA ? a : b);
  const T* x = static_cast<const T*>(kSingleA ? b : a);
  Result* y = static_cast<Result*>(out);
  TENSORD_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kSingleA) {
      y[i] = F()(one, x[i]);
    } else {
      y[i] = F()(x[i], one);
    }
  }
}

// Maximum and minimum of floats, as vector_math has them.
template <class F, class T, bool kSingleA>
void SingleOrder(const void* a, const void* b, void* out, int64_t n) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, *static_cast<const T*>(kSingleA ? a : b));
  const T* x = static_cast<const T*>(kSingleA ? b : a);
  T* y = static_cast<T*>(out);
  const auto order = [&](auto v) {
    const auto first = kSingleA ? one : v;
    const auto second = kSingleA ? v : one;
    if constexpr (std::is_same_v<F, scalar::Maximum>) {
      return Maximum(d, first, second);
    } else {
      return Minimum(d, first, second);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(order(hn::LoadU(d, x + i)), d, y + i);
  if (i >= n) return;
  HWY_ALIGN T rest[hn::MaxLanes(hn::ScalableTag<T>())] = {};
  const size_t rest_bytes = static_cast<size_t>(n - i) * sizeof(T);
  std::memcpy(rest, x + i, rest_bytes);
  hn::Store(order(hn::Load(d, rest)), d, rest);
  std::memcpy(y + i, rest, rest_bytes);
}

template <class F, class T, bool kSingleA>
constexpr ElementwiseFunction Entry() {
  constexpr bool kOrder = std::is_same_v<F, scalar::Maximum> || std::is_same_v<F, scalar::Minimum>;
  constexpr bool kQuotient = std::is_same_v<F, scalar::Divide> || std::is_same_v<F, scalar::Remainder>;
  if constexpr (RealElement<T> && kOrder) {
    return &SingleOrder<F, T, kSingleA>;
  } else if constexpr (IntegerElement<T> && kQuotient) {
    return kSingleA ? nullptr : &IntegersByOne<F, T>;
  } else if constexpr (std::is_same_v<F, scalar::Remainder>) {
    return nullptr;
  } else {
    return &SingleLoop<F, T, kSingleA>;
  }
}

template <class F, bool kSingleA>
constexpr ElementwiseRow Row() {
  ElementwiseRow row{};
  row[static_cast<size_t>(DType::kI32)] = Entry<F, int32_t, kSingleA>();
  row[static_cast<size_t>(DType::kI64)] = Entry<F, int64_t, kSingleA>();
  row[static_cast<size_t>(DType::kF32)] = Entry<F, float, kSingleA>();
  row[static_cast<size_t>(DType::kF64)] = Entry<F, double, kSingleA>();
  return row;
}

template <bool kSingleA>
constexpr std::array<ElementwiseRow, kNumCoreOps> Ops() {
  std::array<ElementwiseRow, kNumCoreOps> ops{};
  ops[static_cast<size_t>(CoreOp::kAdd)] = Row<scalar::Add, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kSubtract)] = Row<scalar::Subtract, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kMultiply)] = Row<scalar::Multiply, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kDivide)] = Row<scalar::Divide, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kRemainder)] = Row<scalar::Remainder, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kMaximum)] = Row<scalar::Maximum, kSingleA>();
  ops[static_cast<size_t>(CoreOp::kMinimum)] = Row<scalar::Minimum, kSingleA>();
  return ops;
}

template <bool kSingleA>
constexpr std::array<ElementwiseRow, 7> Compares() {
  return {ElementwiseRow{},
          Row<scalar::Equal, kSingleA>(),
          Row<scalar::NotEqual, kSingleA>(),
          Row<scalar::Less, kSingleA>(),
          Row<scalar::LessEqual, kSingleA>(),
          Row<scalar::Greater, kSingleA>(),
          Row<scalar::GreaterEqual, kSingleA>()};
}

constexpr SingleOperandLoops kSingleLoops = {Ops<true>(), Ops<false>(), Compares<true>(), Compares<false>()};

const SingleOperandLoops* SingleLoops() { return &kSingleLoops; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(SingleLoops);

const SingleOperandLoops& GetSingleOperandLoops() { return *HWY_DYNAMIC_DISPATCH(SingleLoops)(); }

}  // namespace tensord::cpu
#endif
