#include "backends/cpu/elementwise/elementwise.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "backends/cpu/elementwise/loops.h"
#include "backends/cpu/math/half_conversion.h"
#include "backends/cpu/math/vector_math.h"
#include "engine/ops/scalar/scalar_math.h"

namespace tensord::cpu {
namespace {

// ---- Elementary functions: vector_math behind untyped arguments ----

template <typename T, auto kMember>
void MathUnary(const void* a, const void* /*b*/, void* out, int64_t n) {
  (GetVectorMath<T>().*kMember)(static_cast<const T*>(a), static_cast<T*>(out), n);
}

template <typename T, auto kMember>
void MathBinary(const void* a, const void* b, void* out, int64_t n) {
  (GetVectorMath<T>().*kMember)(static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), n);
}

template <typename T>
ElementwiseFunction FindBinaryMath(CoreOp op) {
  using M = VectorMath<T>;
  switch (op) {
    case CoreOp::kPow:
      return &MathBinary<T, &M::pow>;
    case CoreOp::kAtan2:
      return &MathBinary<T, &M::atan2>;
    case CoreOp::kMaximum:
      return &MathBinary<T, &M::maximum>;
    case CoreOp::kMinimum:
      return &MathBinary<T, &M::minimum>;
    case CoreOp::kRemainder:
      return &MathBinary<T, &M::remainder>;
    default:
      return nullptr;
  }
}

template <typename T>
ElementwiseFunction FindMath(CoreOp op) {
  using M = VectorMath<T>;
  switch (op) {
    case CoreOp::kExp:
      return &MathUnary<T, &M::exp>;
    case CoreOp::kExpm1:
      return &MathUnary<T, &M::expm1>;
    case CoreOp::kLog:
      return &MathUnary<T, &M::log>;
    case CoreOp::kLog1p:
      return &MathUnary<T, &M::log1p>;
    case CoreOp::kLogistic:
      return &MathUnary<T, &M::logistic>;
    case CoreOp::kTanh:
      return &MathUnary<T, &M::tanh>;
    case CoreOp::kSin:
      return &MathUnary<T, &M::sin>;
    case CoreOp::kCos:
      return &MathUnary<T, &M::cos>;
    case CoreOp::kTan:
      return &MathUnary<T, &M::tan>;
    case CoreOp::kSqrt:
      return &MathUnary<T, &M::sqrt>;
    case CoreOp::kRsqrt:
      return &MathUnary<T, &M::rsqrt>;
    case CoreOp::kErf:
      return &MathUnary<T, &M::erf>;
    case CoreOp::kCbrt:
      return &MathUnary<T, &M::cbrt>;
    case CoreOp::kSinh:
      return &MathUnary<T, &M::sinh>;
    case CoreOp::kCosh:
      return &MathUnary<T, &M::cosh>;
    case CoreOp::kAsin:
      return &MathUnary<T, &M::asin>;
    case CoreOp::kAcos:
      return &MathUnary<T, &M::acos>;
    case CoreOp::kAtan:
      return &MathUnary<T, &M::atan>;
    case CoreOp::kAsinh:
      return &MathUnary<T, &M::asinh>;
    case CoreOp::kAcosh:
      return &MathUnary<T, &M::acosh>;
    case CoreOp::kAtanh:
      return &MathUnary<T, &M::atanh>;
    case CoreOp::kLog2:
      return &MathUnary<T, &M::log2>;
    case CoreOp::kLog10:
      return &MathUnary<T, &M::log10>;
    case CoreOp::kExp2:
      return &MathUnary<T, &M::exp2>;
    default:
      return FindBinaryMath<T>(op);
  }
}

// ---- What is not vectorised: the scalar meaning, element by element ----

template <class F, typename T>
void ScalarUnary(const void* a, const void* /*b*/, void* out, int64_t n) {
  using Result = decltype(scalar::Apply(F(), T()));
  const T* x = static_cast<const T*>(a);
  Result* y = static_cast<Result*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = scalar::Apply(F(), x[i]);
}

template <class F, typename T>
void ScalarBinary(const void* a, const void* b, void* out, int64_t n) {
  using Result = decltype(scalar::Apply(F(), T(), T()));
  const T* x = static_cast<const T*>(a);
  const T* z = static_cast<const T*>(b);
  Result* y = static_cast<Result*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = scalar::Apply(F(), x[i], z[i]);
}

template <class F, typename T>
constexpr ElementwiseFunction ScalarEntry() {
  if constexpr (HalfElement<T>) {
    return nullptr;
  } else if constexpr (scalar::Takes<F, T>) {
    return &ScalarUnary<F, T>;
  } else if constexpr (scalar::Takes<F, T, T>) {
    return &ScalarBinary<F, T>;
  } else {
    return nullptr;
  }
}

// ---- 16-bit floats: blocks through F32 ----

constexpr int64_t kHalfBlock = 1024;  // elements: two arrays of 4 KiB stay in the nearest cache

template <auto kFind, int kArity, HalfElement T, typename Result>
void HalfBlocks(const void* a, [[maybe_unused]] const void* b, void* out, int64_t n) {
  const ElementwiseFunction compute = kFind(DType::kF32);
  constexpr DType kHalf = kDTypeOf<T>;
  alignas(64) float x[kHalfBlock];
  alignas(64) float z[kHalfBlock];
  for (int64_t i = 0; i < n; i += kHalfBlock) {
    const int64_t count = std::min(n - i, kHalfBlock);
    WidenHalf(kHalf, static_cast<const uint16_t*>(a) + i, x, count);
    if constexpr (kArity == 2) WidenHalf(kHalf, static_cast<const uint16_t*>(b) + i, z, count);
    if constexpr (std::is_same_v<Result, T>) {
      compute(x, z, x, count);
      NarrowToHalf(kHalf, x, static_cast<uint16_t*>(out) + i, count);
    } else {
      compute(x, z, static_cast<Result*>(out) + i, count);
    }
  }
}

template <auto kFind, class F, HalfElement T>
constexpr ElementwiseFunction HalfEntry() {
  if constexpr (scalar::Takes<F, T>) {
    return &HalfBlocks<kFind, 1, T, decltype(scalar::Apply(F(), T()))>;
  } else if constexpr (scalar::Takes<F, T, T>) {
    return &HalfBlocks<kFind, 2, T, decltype(scalar::Apply(F(), T(), T()))>;
  } else {
    return nullptr;
  }
}

template <CoreOp kOp>
ElementwiseFunction FindOp(DType dtype) {
  return FindElementwise(kOp, dtype);
}

template <CompareDirection kDirection>
ElementwiseFunction FindDirection(DType dtype) {
  return FindCompare(kDirection, dtype);
}

// ---- Tables ----

template <class F, auto kFind>
constexpr ElementwiseRow Row() {
  return {nullptr,
          ScalarEntry<F, Bool>(),
          ScalarEntry<F, int32_t>(),
          ScalarEntry<F, int64_t>(),
          ScalarEntry<F, float>(),
          ScalarEntry<F, double>(),
          ScalarEntry<F, Complex64>(),
          ScalarEntry<F, Complex128>(),
          HalfEntry<kFind, F, Float16>(),
          HalfEntry<kFind, F, BFloat16>()};
}

constexpr std::array<ElementwiseRow, kNumCoreOps> kOps = {{
#define TENSORD_UNARY(op, name, functor, summary) Row<scalar::functor, &FindOp<CoreOp::op>>(),
#define TENSORD_BINARY(op, name, functor, traits, summary) Row<scalar::functor, &FindOp<CoreOp::op>>(),
#define TENSORD_OP(op, definition) ElementwiseRow{},
#include "engine/ops/core_ops.def"
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_OP
}};

constexpr std::array<ElementwiseRow, 7> kCompares = {
    ElementwiseRow{},
    Row<scalar::Equal, &FindDirection<CompareDirection::kEq>>(),
    Row<scalar::NotEqual, &FindDirection<CompareDirection::kNe>>(),
    Row<scalar::Less, &FindDirection<CompareDirection::kLt>>(),
    Row<scalar::LessEqual, &FindDirection<CompareDirection::kLe>>(),
    Row<scalar::Greater, &FindDirection<CompareDirection::kGt>>(),
    Row<scalar::GreaterEqual, &FindDirection<CompareDirection::kGe>>()};

}  // namespace

ElementwiseFunction FindElementwise(CoreOp op, DType dtype) {
  const size_t row = static_cast<size_t>(op), column = static_cast<size_t>(dtype);
  if (const ElementwiseFunction loop = GetElementwiseLoops().ops[row][column]; loop != nullptr) return loop;
  ElementwiseFunction math = nullptr;
  if (dtype == DType::kF32) math = FindMath<float>(op);
  if (dtype == DType::kF64) math = FindMath<double>(op);
  return math != nullptr ? math : kOps[row][column];
}

ElementwiseFunction FindCompare(CompareDirection direction, DType dtype) {
  const size_t row = static_cast<size_t>(direction), column = static_cast<size_t>(dtype);
  const ElementwiseFunction loop = GetElementwiseLoops().compares[row][column];
  return loop != nullptr ? loop : kCompares[row][column];
}

int64_t ElementsPerTask(CoreOp op, DType dtype) {
  // Some 5 µs of work each: a fork costs a fraction of one.
  constexpr int64_t kCheap = 32 * 1024;  // 0.02 to 0.3 ns an element, by where the data lie
  constexpr int64_t kMath = 8 * 1024;    // 0.2 to 6 ns
  constexpr int64_t kScalar = 1024;      // 5 to 100 ns
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  const DType computed = half ? DType::kF32 : dtype;
  if (computed == DType::kF32 && FindMath<float>(op) != nullptr) return kMath;
  if (computed == DType::kF64 && FindMath<double>(op) != nullptr) return kMath;
  if (half) return kMath;
  const bool vectorised = GetElementwiseLoops().ops[static_cast<size_t>(op)][static_cast<size_t>(dtype)] != nullptr;
  if (vectorised || kOps[static_cast<size_t>(op)][static_cast<size_t>(dtype)] == nullptr) return kCheap;
  return kScalar;
}

}  // namespace tensord::cpu
