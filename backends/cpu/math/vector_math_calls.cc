#include "backends/cpu/math/vector_math_calls.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/math/vector_math_calls.cc"
#include "hwy/foreach_target.h"  // must stand before highway.h
#include "hwy/highway.h"

#include "backends/cpu/math/vector_math_erf-inl.h"
#include "backends/cpu/math/vector_math_exp-inl.h"
#include "backends/cpu/math/vector_math_hyperbolic-inl.h"
#include "backends/cpu/math/vector_math_log-inl.h"
#include "backends/cpu/math/vector_math_order-inl.h"
#include "backends/cpu/math/vector_math_pow-inl.h"
#include "backends/cpu/math/vector_math_sleef-inl.h"
#include "backends/cpu/math/vector_math_trig-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::cpu {
namespace HWY_NAMESPACE {
namespace {

#undef TENSORD_HAS_CALLS
// Set if vectors are passed in registers whatever the rest of the program is compiled for.
#if HWY_ARCH_X86 && (HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_AVX2) && !TENSORD_SLEEF_IS_OUT_OF_REACH
#define TENSORD_HAS_CALLS 1
#else
#define TENSORD_HAS_CALLS 0
#endif

#if TENSORD_HAVE_LOOKUP
template <typename T>
const ExpNumbers<T>* NumbersOfExp() {
  using C = ExpConstants<T>;
  using Table = ExpTable<T>;
  static const ExpNumbers<T> numbers = {
      C::kUnderflow,         FloatLayout<T>::kFar, C::kOverflow, Table::kSixteenthsPerOne, FloatLayout<T>::kRounder,
      Table::kSixteenthHigh, Table::kSixteenthLow, Table::kPoly, Exp2Table<T>::kPower};
  return &numbers;
}
#else
template <typename T>
const ExpNumbers<T>* NumbersOfExp() {
  return nullptr;
}
#endif

#if TENSORD_HAS_CALLS

template <typename T>
using Register = decltype(hn::Vec<hn::ScalableTag<T>>::raw);

#define TENSORD_CALL_UNARY(Name)                        \
  template <typename T>                                 \
  Register<T> Name##Call(Register<T> x) {               \
    const hn::ScalableTag<T> d;                         \
    return Name(d, hn::Vec<hn::ScalableTag<T>>{x}).raw; \
  }
#define TENSORD_CALL_BINARY(Name)                                                       \
  template <typename T>                                                                 \
  Register<T> Name##Call(Register<T> a, Register<T> b) {                                \
    const hn::ScalableTag<T> d;                                                         \
    return Name(d, hn::Vec<hn::ScalableTag<T>>{a}, hn::Vec<hn::ScalableTag<T>>{b}).raw; \
  }

TENSORD_CALL_UNARY(Exp)
TENSORD_CALL_UNARY(Expm1)
TENSORD_CALL_UNARY(Log)
TENSORD_CALL_UNARY(Log1p)
TENSORD_CALL_UNARY(Logistic)
TENSORD_CALL_UNARY(Tanh)
TENSORD_CALL_UNARY(Sin)
TENSORD_CALL_UNARY(Cos)
TENSORD_CALL_UNARY(Tan)
TENSORD_CALL_UNARY(Erf)
TENSORD_CALL_UNARY(Cbrt)
TENSORD_CALL_UNARY(Sinh)
TENSORD_CALL_UNARY(Cosh)
TENSORD_CALL_UNARY(Asin)
TENSORD_CALL_UNARY(Acos)
TENSORD_CALL_UNARY(Atan)
TENSORD_CALL_UNARY(Asinh)
TENSORD_CALL_UNARY(Acosh)
TENSORD_CALL_UNARY(Atanh)
TENSORD_CALL_UNARY(Log2)
TENSORD_CALL_UNARY(Log10)
TENSORD_CALL_UNARY(Exp2)
TENSORD_CALL_BINARY(Pow)
TENSORD_CALL_BINARY(Atan2)
TENSORD_CALL_BINARY(Remainder)
#undef TENSORD_CALL_UNARY
#undef TENSORD_CALL_BINARY

template <typename T>
std::array<const void*, kNumCoreOps> Table() {
  std::array<const void*, kNumCoreOps> table = {};
  const auto set = [&table](CoreOp op, auto* function) {
    table[static_cast<size_t>(op)] = reinterpret_cast<const void*>(function);
  };
  set(CoreOp::kExp, &ExpCall<T>);
  set(CoreOp::kExpm1, &Expm1Call<T>);
  set(CoreOp::kLog, &LogCall<T>);
  set(CoreOp::kLog1p, &Log1pCall<T>);
  set(CoreOp::kLogistic, &LogisticCall<T>);
  set(CoreOp::kTanh, &TanhCall<T>);
  set(CoreOp::kSin, &SinCall<T>);
  set(CoreOp::kCos, &CosCall<T>);
  set(CoreOp::kTan, &TanCall<T>);
  set(CoreOp::kErf, &ErfCall<T>);
  set(CoreOp::kCbrt, &CbrtCall<T>);
  set(CoreOp::kSinh, &SinhCall<T>);
  set(CoreOp::kCosh, &CoshCall<T>);
  set(CoreOp::kAsin, &AsinCall<T>);
  set(CoreOp::kAcos, &AcosCall<T>);
  set(CoreOp::kAtan, &AtanCall<T>);
  set(CoreOp::kAsinh, &AsinhCall<T>);
  set(CoreOp::kAcosh, &AcoshCall<T>);
  set(CoreOp::kAtanh, &AtanhCall<T>);
  set(CoreOp::kLog2, &Log2Call<T>);
  set(CoreOp::kLog10, &Log10Call<T>);
  set(CoreOp::kExp2, &Exp2Call<T>);
  set(CoreOp::kPow, &PowCall<T>);
  set(CoreOp::kAtan2, &Atan2Call<T>);
  set(CoreOp::kRemainder, &RemainderCall<T>);
  return table;
}

const VectorMathCalls* Calls() {
  static const VectorMathCalls calls = {sizeof(Register<float>), Table<float>(), Table<double>(), NumbersOfExp<float>(),
                                        NumbersOfExp<double>()};
  return &calls;
}

#else

// Code can be made for the same instruction sets, without calls.
const VectorMathCalls* Calls() {
  constexpr int kVectorBytes = !HWY_ARCH_X86 ? 0 : HWY_TARGET <= HWY_AVX3 ? 64 : HWY_TARGET == HWY_AVX2 ? 32 : 0;
  static const VectorMathCalls calls = {
      .vector_bytes = kVectorBytes, .exp_f32 = NumbersOfExp<float>(), .exp_f64 = NumbersOfExp<double>()};
  return &calls;
}

#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tensord::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::cpu {

HWY_EXPORT(Calls);

const VectorMathCalls& GetVectorMathCalls() { return *HWY_DYNAMIC_DISPATCH(Calls)(); }

const void* VectorMathCalls::Find(CoreOp op, DType dtype) const {
  if (dtype == DType::kF32) return f32[static_cast<size_t>(op)];
  if (dtype == DType::kF64) return f64[static_cast<size_t>(op)];
  return nullptr;
}

}  // namespace tensord::cpu
#endif
