#include "tests/testlib/numbers/exact_math.h"

#include <algorithm>
#include <limits>

namespace tensord {

#define TENSORD_MEANS(op, expression) \
  case CoreOp::op:                    \
    return []([[maybe_unused]] E x, [[maybe_unused]] E y) -> E { return expression; };

template <typename E>
ExactReal<E> ExactRealOf(CoreOp op) {
  switch (op) {
    TENSORD_MEANS(kNegate, -x)
    TENSORD_MEANS(kConj, x)
    TENSORD_MEANS(kAbs, exact::Fabs(x))
    TENSORD_MEANS(kSign, x > 0 ? E(1) : x < 0 ? E(-1) : x)
    TENSORD_MEANS(kExp, exact::Exp(x))
    TENSORD_MEANS(kLog, exact::Log(x))
    TENSORD_MEANS(kSin, exact::Sin(x))
    TENSORD_MEANS(kCos, exact::Cos(x))
    TENSORD_MEANS(kTanh, exact::Tanh(x))
    TENSORD_MEANS(kSqrt, exact::Sqrt(x))
    TENSORD_MEANS(kRsqrt, 1 / exact::Sqrt(x))
    TENSORD_MEANS(kExpm1, exact::Expm1(x))
    TENSORD_MEANS(kLog1p, exact::Log1p(x))
    TENSORD_MEANS(kLogistic, exact::Logistic(x))
    TENSORD_MEANS(kErf, exact::Erf(x))
    TENSORD_MEANS(kFloor, exact::Floor(x))
    TENSORD_MEANS(kCeil, exact::Ceil(x))
    TENSORD_MEANS(kRoundNearestEven, exact::NearbyInt(x))
    TENSORD_MEANS(kIsFinite, exact::IsFinite(x) ? E(1) : E(0))
    TENSORD_MEANS(kReal, x)
    TENSORD_MEANS(kImag, E(0))
    TENSORD_MEANS(kTan, exact::Tan(x))
    TENSORD_MEANS(kCbrt, exact::Cbrt(x))
    TENSORD_MEANS(kSinh, exact::Sinh(x))
    TENSORD_MEANS(kCosh, exact::Cosh(x))
    TENSORD_MEANS(kAsin, exact::Asin(x))
    TENSORD_MEANS(kAcos, exact::Acos(x))
    TENSORD_MEANS(kAtan, exact::Atan(x))
    TENSORD_MEANS(kAsinh, exact::Asinh(x))
    TENSORD_MEANS(kAcosh, exact::Acosh(x))
    TENSORD_MEANS(kAtanh, exact::Atanh(x))
    TENSORD_MEANS(kLog2, exact::Log2(x))
    TENSORD_MEANS(kLog10, exact::Log10(x))
    TENSORD_MEANS(kExp2, exact::Exp2(x))
    TENSORD_MEANS(kAdd, x + y)
    TENSORD_MEANS(kSubtract, x - y)
    TENSORD_MEANS(kMultiply, x * y)
    TENSORD_MEANS(kDivide, x / y)
    TENSORD_MEANS(kMaximum, exact::Maximum(x, y))
    TENSORD_MEANS(kMinimum, exact::Minimum(x, y))
    TENSORD_MEANS(kPow, exact::Pow(x, y))
    TENSORD_MEANS(kRemainder, exact::Fmod(x, y))
    TENSORD_MEANS(kAtan2, exact::Atan2(x, y))
    default:
      return nullptr;
  }
}

ExactComplex ExactComplexOf(CoreOp op) {
  using E = exact::WideComplex;
  switch (op) {
    TENSORD_MEANS(kNegate, -x)
    TENSORD_MEANS(kConj, (E{x.re, -x.im}))
    TENSORD_MEANS(kAbs, (E{exact::Modulus(x), 0}))
    TENSORD_MEANS(kSign, exact::Sign(x))
    TENSORD_MEANS(kExp, exact::Exp(x))
    TENSORD_MEANS(kLog, exact::Log(x))
    TENSORD_MEANS(kSin, exact::Sin(x))
    TENSORD_MEANS(kCos, exact::Cos(x))
    TENSORD_MEANS(kTanh, exact::Tanh(x))
    TENSORD_MEANS(kSqrt, exact::Sqrt(x))
    TENSORD_MEANS(kRsqrt, (E{1, 0}) / exact::Sqrt(x))
    TENSORD_MEANS(kExpm1, exact::Expm1(x))
    TENSORD_MEANS(kLog1p, exact::Log1p(x))
    TENSORD_MEANS(kLogistic, exact::Logistic(x))
    TENSORD_MEANS(kReal, (E{x.re, 0}))
    TENSORD_MEANS(kImag, (E{x.im, 0}))
    TENSORD_MEANS(kTan, exact::Tan(x))
    TENSORD_MEANS(kCbrt, exact::Cbrt(x))
    TENSORD_MEANS(kSinh, exact::Sinh(x))
    TENSORD_MEANS(kCosh, exact::Cosh(x))
    TENSORD_MEANS(kAsin, exact::Asin(x))
    TENSORD_MEANS(kAcos, exact::Acos(x))
    TENSORD_MEANS(kAtan, exact::Atan(x))
    TENSORD_MEANS(kAsinh, exact::Asinh(x))
    TENSORD_MEANS(kAcosh, exact::Acosh(x))
    TENSORD_MEANS(kAtanh, exact::Atanh(x))
    TENSORD_MEANS(kLog2, exact::LogToBase(x, 2))
    TENSORD_MEANS(kLog10, exact::LogToBase(x, 10))
    TENSORD_MEANS(kExp2, exact::Exp2(x))
    TENSORD_MEANS(kAdd, x + y)
    TENSORD_MEANS(kSubtract, x - y)
    TENSORD_MEANS(kMultiply, x * y)
    TENSORD_MEANS(kDivide, x / y)
    TENSORD_MEANS(kMaximum, x.re > y.re || (x.re == y.re && x.im >= y.im) ? x : y)
    TENSORD_MEANS(kMinimum, x.re < y.re || (x.re == y.re && x.im <= y.im) ? x : y)
    TENSORD_MEANS(kPow, exact::Pow(x, y))
    default:
      return nullptr;
  }
}
#undef TENSORD_MEANS

FloatFormat FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {.digits = 11, .min_exponent = -13, .max_exponent = 16};
    case DType::kBF16:
      return {.digits = 8, .min_exponent = -125, .max_exponent = 128};
    case DType::kF32:
      return {.digits = 24, .min_exponent = -125, .max_exponent = 128};
    default:
      return {.digits = 53, .min_exponent = -1021, .max_exponent = 1024};
  }
}

template <typename E>
double UlpError(E value, E exact, const FloatFormat& format) {
  constexpr double kWrong = std::numeric_limits<double>::quiet_NaN();
  if (exact::IsNan(exact) || exact::IsNan(value)) return exact::IsNan(exact) && exact::IsNan(value) ? 0 : kWrong;
  if (exact::SignBit(value) != exact::SignBit(exact)) return kWrong;
  if (value == exact) return 0;
  if (exact == 0) return kWrong;
  const E top = exact::Ldexp(E(1), format.max_exponent);
  const E magnitude = exact::Fabs(exact);
  const E rounded = exact::Fabs(value);
  int exponent = format.max_exponent;
  if (magnitude < top) exact::Frexp(magnitude, &exponent);
  const E ulp = exact::Ldexp(E(1), std::max(exponent, format.min_exponent) - format.digits);
  if (magnitude > top + 4 * ulp && exact::IsFinite(value)) return kWrong;
  const E error = (rounded > top ? top : rounded) - (magnitude > top ? top : magnitude);
  return static_cast<double>(exact::Fabs(error) / ulp);
}

template ExactReal<double> ExactRealOf(CoreOp op);
template double UlpError(double value, double exact, const FloatFormat& format);
template ExactReal<exact::Wide> ExactRealOf(CoreOp op);
template double UlpError(exact::Wide value, exact::Wide exact, const FloatFormat& format);

}  // namespace tensord
