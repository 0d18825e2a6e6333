#include "backends/cuda/codegen/prelude.h"

namespace tensord {
namespace {

#define TENSORD_BOOL_1(Name, expr) \
  { #Name "Bool", "Types", "TENSORD_FN bool " #Name "Bool(bool x) { return " #expr "; }\n" }
#define TENSORD_BOOL_2(Name, expr) \
  { #Name "Bool", "Types", "TENSORD_FN bool " #Name "Bool(bool a, bool b) { return " #expr "; }\n" }
#define TENSORD_INTEGER_1(Name, required, expr) \
  { #Name "Integer", required, "template <typename T>\nTENSORD_FN T " #Name "Integer(T x) { return " #expr "; }\n" }
#define TENSORD_INTEGER_2(Name, required, expr)                                                  \
  {                                                                                              \
#Name "Integer", required,                                                                   \
        "template <typename T>\nTENSORD_FN T " #Name "Integer(T a, T b) { return " #expr "; }\n" \
  }
#define TENSORD_REAL_1(Name, expr) \
  { #Name "Real", "Types", "template <typename R>\nTENSORD_FN R " #Name "Real(R x) { return " #expr "; }\n" }
#define TENSORD_REAL_2(Name, expr) \
  { #Name "Real", "Types", "template <typename R>\nTENSORD_FN R " #Name "Real(R a, R b) { return " #expr "; }\n" }

constexpr CudaPiece kScalarPieces[] = {
    TENSORD_BOOL_1(Not, !x),
    TENSORD_BOOL_2(Add, a || b),
    TENSORD_BOOL_2(Multiply, a&& b),
    TENSORD_BOOL_2(Maximum, a || b),
    TENSORD_BOOL_2(Minimum, a&& b),
    TENSORD_BOOL_2(And, a&& b),
    TENSORD_BOOL_2(Or, a || b),
    TENSORD_BOOL_2(Xor, a != b),

    {"Unsigned", "Types", R"(TENSORD_FN u32 Bits(i32 x) { return (u32)x; }
TENSORD_FN u64 Bits(i64 x) { return (u64)x; }
)"},
    TENSORD_INTEGER_1(Negate, "Unsigned", (T)(0 - Bits(x))),
    TENSORD_INTEGER_1(Conj, "Types", x),
    TENSORD_INTEGER_1(Abs, "Unsigned", x < 0 ? (T)(0 - Bits(x)) : x),
    TENSORD_INTEGER_1(Sign, "Types", (T)((x > 0) - (x < 0))),
    TENSORD_INTEGER_1(Not, "Types", (T)~x),
    TENSORD_INTEGER_2(Add, "Unsigned", (T)(Bits(a) + Bits(b))),
    TENSORD_INTEGER_2(Subtract, "Unsigned", (T)(Bits(a) - Bits(b))),
    TENSORD_INTEGER_2(Multiply, "Unsigned", (T)(Bits(a) * Bits(b))),
    TENSORD_INTEGER_2(Divide, "Unsigned",
                      b == 0    ? (T)-1
                      : b == -1 ? (T)(0 - Bits(a))
                                : (T)(a / b)),
    TENSORD_INTEGER_2(Remainder, "Types",
                      b == 0    ? a
                      : b == -1 ? (T)0
                                : (T)(a % b)),
    TENSORD_INTEGER_2(Maximum, "Types", a > b ? a : b),
    TENSORD_INTEGER_2(Minimum, "Types", a < b ? a : b),
    TENSORD_INTEGER_2(And, "Types", (T)(a& b)),
    TENSORD_INTEGER_2(Or, "Types", (T)(a | b)),
    TENSORD_INTEGER_2(Xor, "Types", (T)(a ^ b)),
    {"PowInteger", "Unsigned", R"(template <typename T>
TENSORD_FN T PowInteger(T a, T b) {
  if (b < 0) return a == 1 ? (T)1 : a == -1 ? (b % 2 != 0 ? (T)-1 : (T)1) : (T)0;
  auto result = Bits((T)1), base = Bits(a);
  for (auto exponent = Bits(b); exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return (T)result;
}
)"},

    TENSORD_REAL_1(Negate, -x),
    TENSORD_REAL_1(Conj, x),
    TENSORD_REAL_1(Abs, fabs(x)),
    TENSORD_REAL_1(Sign, x > 0   ? (R)1
                         : x < 0 ? (R)-1
                                 : x),
    TENSORD_REAL_1(Exp, exp(x)),
    TENSORD_REAL_1(Log, log(x)),
    TENSORD_REAL_1(Sin, sin(x)),
    TENSORD_REAL_1(Cos, cos(x)),
    TENSORD_REAL_1(Tan, tan(x)),
    TENSORD_REAL_1(Tanh, tanh(x)),
    TENSORD_REAL_1(Sqrt, sqrt(x)),
    TENSORD_REAL_1(Rsqrt, (R)1 / sqrt(x)),
    TENSORD_REAL_1(Expm1, expm1(x)),
    TENSORD_REAL_1(Log1p, log1p(x)),
    TENSORD_REAL_1(Cbrt, cbrt(x)),
    TENSORD_REAL_1(Sinh, sinh(x)),
    TENSORD_REAL_1(Cosh, cosh(x)),
    TENSORD_REAL_1(Asin, asin(x)),
    TENSORD_REAL_1(Acos, acos(x)),
    TENSORD_REAL_1(Atan, atan(x)),
    TENSORD_REAL_1(Asinh, asinh(x)),
    TENSORD_REAL_1(Acosh, acosh(x)),
    TENSORD_REAL_1(Atanh, atanh(x)),
    TENSORD_REAL_1(Log2, log2(x)),
    TENSORD_REAL_1(Exp2, exp2(x)),
    TENSORD_REAL_1(Log10, (R)log10((f64)x)),  // of powers of ten exact
    TENSORD_REAL_1(Erf, erf(x)),
    TENSORD_REAL_1(Floor, floor(x)),
    TENSORD_REAL_1(Ceil, ceil(x)),
    TENSORD_REAL_1(RoundNearestEven, rint(x)),
    TENSORD_REAL_1(RealPart, x),
    TENSORD_REAL_1(ImagPart, (R)0),
    {"LogisticReal", "Types", R"(template <typename R>
TENSORD_FN R LogisticReal(R x) {
  const R e = exp(-fabs(x));  // never overflows
  return (x >= 0 ? (R)1 : e) / (1 + e);
}
)"},
    {"IsFiniteReal", "Types", R"(template <typename R>
TENSORD_FN bool IsFiniteReal(R x) {
  return isfinite(x);
}
)"},
    TENSORD_REAL_2(Add, a + b),
    TENSORD_REAL_2(Subtract, a - b),
    TENSORD_REAL_2(Multiply, a* b),
    TENSORD_REAL_2(Divide, a / b),
    TENSORD_REAL_2(Remainder, fmod(a, b)),
    TENSORD_REAL_2(Pow, b == 1   ? a
                        : b == 2 ? a * a
                                 : pow(a, b)),
    TENSORD_REAL_2(Atan2, atan2(a, b)),
    {"MaximumReal", "Types", R"(template <typename R>
TENSORD_FN R MaximumReal(R a, R b) {
  if (isnan(a)) return a;
  if (isnan(b)) return b;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // one instruction there
TENSORD_FN f32 MaximumReal(f32 a, f32 b) {
  f32 x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
#endif
)"},
    {"MinimumReal", "Types", R"(template <typename R>
TENSORD_FN R MinimumReal(R a, R b) {
  if (isnan(a)) return a;
  if (isnan(b)) return b;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800  // one instruction there
TENSORD_FN f32 MinimumReal(f32 a, f32 b) {
  f32 x;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
}
#endif
)"},
    {"MakeComplexReal", "Complex", R"(template <typename R>
TENSORD_FN Complex<R> MakeComplexReal(R re, R im) {
  return Complex<R>{re, im};
}
)"},
};

}  // namespace

absl::Span<const CudaPiece> CudaScalarPieces() { return kScalarPieces; }

}  // namespace tensord
