#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_REAL_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_REAL_H_

#include <cmath>

#if TENSORD_HAS_QUADMATH
#include <quadmath.h>
#endif

// The real functions that results are measured against, on double (for results of 32 bits and fewer) and on the widest
// type there is (for F64). Limits, infinities and zeros are those of C's Annex F.
namespace tensord::exact {

#if TENSORD_HAS_QUADMATH
using Wide = __float128;  // 113 bits of mantissa
#define TENSORD_WIDE(function) function##q
#else
using Wide = long double;  // 113 bits on ARM64, 64 on x86
#define TENSORD_WIDE(function) function##l
#endif

#define TENSORD_EXACT_UNARY(Name, function)                 \
  inline double Name(double x) { return std::function(x); } \
  inline Wide Name(Wide x) { return TENSORD_WIDE(function)(x); }
#define TENSORD_EXACT_BINARY(Name, function)                             \
  inline double Name(double x, double y) { return std::function(x, y); } \
  inline Wide Name(Wide x, Wide y) { return TENSORD_WIDE(function)(x, y); }
TENSORD_EXACT_UNARY(Fabs, fabs)
TENSORD_EXACT_UNARY(Exp, exp)
TENSORD_EXACT_UNARY(Expm1, expm1)
TENSORD_EXACT_UNARY(Log, log)
TENSORD_EXACT_UNARY(Log1p, log1p)
TENSORD_EXACT_UNARY(Sin, sin)
TENSORD_EXACT_UNARY(Cos, cos)
TENSORD_EXACT_UNARY(Tan, tan)
TENSORD_EXACT_UNARY(Sinh, sinh)
TENSORD_EXACT_UNARY(Cosh, cosh)
TENSORD_EXACT_UNARY(Tanh, tanh)
TENSORD_EXACT_UNARY(Asin, asin)
TENSORD_EXACT_UNARY(Acos, acos)
TENSORD_EXACT_UNARY(Atan, atan)
TENSORD_EXACT_UNARY(Asinh, asinh)
TENSORD_EXACT_UNARY(Acosh, acosh)
TENSORD_EXACT_UNARY(Atanh, atanh)
TENSORD_EXACT_UNARY(Log2, log2)
TENSORD_EXACT_UNARY(Log10, log10)
TENSORD_EXACT_UNARY(Exp2, exp2)
TENSORD_EXACT_UNARY(Sqrt, sqrt)
TENSORD_EXACT_UNARY(Cbrt, cbrt)
TENSORD_EXACT_UNARY(Erf, erf)
TENSORD_EXACT_UNARY(Floor, floor)
TENSORD_EXACT_UNARY(Ceil, ceil)
TENSORD_EXACT_UNARY(NearbyInt, nearbyint)
TENSORD_EXACT_BINARY(Pow, pow)
TENSORD_EXACT_BINARY(Atan2, atan2)
TENSORD_EXACT_BINARY(Fmod, fmod)
TENSORD_EXACT_BINARY(Hypot, hypot)
TENSORD_EXACT_BINARY(CopySign, copysign)
#undef TENSORD_EXACT_UNARY
#undef TENSORD_EXACT_BINARY

inline double Ldexp(double x, int n) { return std::ldexp(x, n); }
inline Wide Ldexp(Wide x, int n) { return TENSORD_WIDE(ldexp)(x, n); }
inline double Frexp(double x, int* exponent) { return std::frexp(x, exponent); }
inline Wide Frexp(Wide x, int* exponent) { return TENSORD_WIDE(frexp)(x, exponent); }
#undef TENSORD_WIDE

template <typename E>
bool IsNan(E x) {
  return x != x;
}
template <typename E>
bool IsFinite(E x) {
  return x - x == 0;
}
template <typename E>
bool SignBit(E x) {
  return CopySign(E(1), x) < 0;
}

template <typename E>
E Logistic(E x) {
  const E e = Exp(-Fabs(x));
  return (x < 0 ? e : E(1)) / (1 + e);
}

// StableHLO's order: NaN wins, +0 is above -0.
template <typename E>
E Maximum(E x, E y) {
  if (IsNan(x) || IsNan(y)) return x + y;
  if (x == y) return SignBit(x) ? y : x;
  return x > y ? x : y;
}
template <typename E>
E Minimum(E x, E y) {
  return -Maximum(-x, -y);
}

}  // namespace tensord::exact

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_REAL_H_
