#include "tests/testlib/property/element_radius.h"

#include <algorithm>
#include <cmath>

#include "engine/ops/scalar/scalar_math.h"
#include "tests/testlib/property/reference_bounds.h"
#include "tests/testlib/property/rounding.h"

namespace tensord::property {
namespace {

// Returns the allowed error of an elementary function. 16-bit floats are computed in F32: only the rounding may go the
// other way.
double FunctionUlps(DType dtype) { return SizeOf(dtype) == 2 ? 1.01 : 4; }
// The same for complex ones, in units of the larger part.
constexpr double kComplexUlps = 32;

bool IsFinite(Complex128 z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
double LargerPart(Complex128 z) { return std::max(std::abs(z.real()), std::abs(z.imag())); }

// An uncertain number near infinity may be one: then nothing is known of what is made of it.
Uncertain Prepared(DType dtype, Uncertain x) {
  if (x.radius > 0 && kInexact.Contains(dtype) &&
      (!IsFinite(x.value) || LargerPart(x.value) + x.radius >= LargestOf(dtype))) {
    x.radius = kUnknown;
  }
  return x;
}

// A radius computed in doubles, which round as well; NaN says that nothing is known.
double Rounded(double radius) { return std::isnan(radius) ? kUnknown : radius * (1 + 1e-9); }

// `ulps` units in the last place of numbers as large as y and a little more.
double Ulps(DType dtype, double ulps, double y) {
  const double spacing = SpacingAt(dtype, std::abs(y));
  return ulps * SpacingAt(dtype, std::abs(y) + ulps * spacing);
}

// Returns the value of functions that are monotone between two numbers, or convex and even: values between these differ
// from one by no more than their ends do.
double Monotone(CoreOp op, double x) {
  switch (op) {
    case CoreOp::kExp:
      return scalar::Exp{}(x);
    case CoreOp::kLog:
      return scalar::Log{}(x);
    case CoreOp::kTanh:
      return scalar::Tanh{}(x);
    case CoreOp::kSqrt:
      return scalar::Sqrt{}(x);
    case CoreOp::kRsqrt:
      return scalar::Rsqrt{}(x);
    case CoreOp::kExpm1:
      return scalar::Expm1{}(x);
    case CoreOp::kLog1p:
      return scalar::Log1p{}(x);
    case CoreOp::kLogistic:
      return scalar::Logistic{}(x);
    case CoreOp::kErf:
      return scalar::Erf{}(x);
    case CoreOp::kCbrt:
      return scalar::Cbrt{}(x);
    case CoreOp::kSinh:
      return scalar::Sinh{}(x);
    case CoreOp::kCosh:
      return scalar::Cosh{}(x);
    case CoreOp::kAsin:
      return scalar::Asin{}(x);
    case CoreOp::kAcos:
      return scalar::Acos{}(x);
    case CoreOp::kAtan:
      return scalar::Atan{}(x);
    case CoreOp::kAsinh:
      return scalar::Asinh{}(x);
    case CoreOp::kAcosh:
      return scalar::Acosh{}(x);
    case CoreOp::kAtanh:
      return scalar::Atanh{}(x);
    case CoreOp::kLog2:
      return scalar::Log2{}(x);
    case CoreOp::kLog10:
      return scalar::Log10{}(x);
    case CoreOp::kExp2:
      return scalar::Exp2{}(x);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

double RealUnary(CoreOp op, DType dtype, double x, double radius, double y) {
  if (radius == 0) return std::isnan(y) ? 0 : Ulps(dtype, FunctionUlps(dtype), y);
  switch (op) {
    case CoreOp::kNegate:
    case CoreOp::kConj:
    case CoreOp::kAbs:
    case CoreOp::kReal:
      return radius;
    case CoreOp::kImag:
      return 0;
    case CoreOp::kSin:
    case CoreOp::kCos:
      return radius + Ulps(dtype, FunctionUlps(dtype), 1);
    default:
      break;
  }
  const double reach = radius * (1 + 1e-12) + std::ldexp(std::abs(x), -52);
  const double low = Monotone(op, x - reach), high = Monotone(op, x + reach);
  if (!std::isfinite(low) || !std::isfinite(high) || !std::isfinite(y)) return kUnknown;
  return std::max(std::abs(low - y), std::abs(high - y)) +
         Ulps(dtype, FunctionUlps(dtype), std::max(std::abs(low), std::abs(high)));
}

double ComplexUnary(CoreOp op, DType dtype, Uncertain x, Complex128 y) {
  switch (op) {
    case CoreOp::kNegate:
    case CoreOp::kConj:
    case CoreOp::kReal:
    case CoreOp::kImag:
      return x.radius;
    case CoreOp::kAbs:
      if (!IsFinite(x.value) && x.radius > 0) return kUnknown;
      return std::isnan(y.real()) ? kUnknown : x.radius * std::sqrt(2.0) + Ulps(dtype, FunctionUlps(dtype), y.real());
    default:
      break;
  }
  // If these overflow, and on their branch cuts, implementations differ; the conformance cases pin ours.
  const double size = LargerPart(x.value);
  if (x.radius > 0 || !IsFinite(x.value) || !IsFinite(y) || size > 0x1p20 || (size > 0 && size < 0x1p-20)) {
    return kUnknown;
  }
  return Ulps(dtype, kComplexUlps, LargerPart(y));
}

double RealBinary(CoreOp op, DType dtype, Uncertain a, Uncertain b, double y) {
  const double x = a.value.real(), z = b.value.real();
  if (a.radius == 0 && b.radius == 0) return std::isnan(y) ? 0 : Ulps(dtype, FunctionUlps(dtype), y);
  if (op == CoreOp::kComplex) return std::max(a.radius, b.radius);
  if (op == CoreOp::kPow || op == CoreOp::kRemainder) return kUnknown;
  if (std::isnan(x) || std::isnan(z)) return 0;
  if (op == CoreOp::kMaximum || op == CoreOp::kMinimum) return std::max(a.radius, b.radius);
  const bool infinite = std::isinf(x) || std::isinf(z);
  switch (op) {
    case CoreOp::kAdd:
    case CoreOp::kSubtract: {
      if (infinite) return 0;
      const double moved = a.radius + b.radius;
      return std::isfinite(y) ? moved + Ulps(dtype, 1, std::abs(y) + moved) : kUnknown;
    }
    case CoreOp::kMultiply: {
      const double moved = std::abs(x) * b.radius + std::abs(z) * a.radius + a.radius * b.radius;
      return std::isfinite(y) && !infinite ? moved + Ulps(dtype, 1, std::abs(y) + moved) : kUnknown;
    }
    case CoreOp::kDivide: {
      const double least = std::abs(z) - b.radius;
      if (!std::isfinite(y) || infinite || least <= 0) return kUnknown;
      const double moved = (a.radius + std::abs(x / z) * b.radius) / least;
      return moved + Ulps(dtype, 1, std::abs(y) + moved);
    }
    case CoreOp::kAtan2: {
      // (y, x): the way to the other point, seen from the origin; unknown where it may cross the cut.
      const double way = a.radius + b.radius, distance = std::hypot(x, z) - way;
      if (infinite || !(distance > 0) || (z - b.radius <= 0 && std::abs(x) <= a.radius)) return kUnknown;
      return way / distance + Ulps(dtype, FunctionUlps(dtype), 4);
    }
    default:
      return kUnknown;
  }
}

bool IsWhole(Complex128 z) { return z.real() == std::trunc(z.real()) && z.imag() == std::trunc(z.imag()); }

double ComplexBinary(CoreOp op, DType dtype, Uncertain a, Uncertain b, Complex128 y) {
  const bool exact = a.radius == 0 && b.radius == 0;
  switch (op) {
    case CoreOp::kAdd:
    case CoreOp::kSubtract:
      if (!IsFinite(y)) return kUnknown;
      return a.radius + b.radius + Ulps(dtype, 1, LargerPart(y) + a.radius + b.radius);
    case CoreOp::kMaximum:
    case CoreOp::kMinimum:
      return kUnknown;  // exact operands have been dealt with
    default:
      break;
  }
  if (!IsFinite(a.value) || !IsFinite(b.value) || !IsFinite(y)) return kUnknown;
  const double m = std::abs(a.value), n = std::abs(b.value);
  const double ra = a.radius * std::sqrt(2.0), rb = b.radius * std::sqrt(2.0);
  switch (op) {
    case CoreOp::kMultiply: {
      const double product = (m + ra) * (n + rb);
      if (!(product < LargestOf(dtype) / 4)) return kUnknown;
      if (exact && IsWhole(a.value) && IsWhole(b.value) && 2 * product < std::ldexp(1.0, SignificandBits(dtype))) {
        return 0;
      }
      return m * rb + n * ra + ra * rb + Ulps(dtype, 8, product);
    }
    case CoreOp::kDivide: {
      const double least = n - rb;
      if (!(least > 0x1p-20) || n > 0x1p20 || m > 0x1p20 || (m > 0 && m < 0x1p-20)) return kUnknown;
      const double moved = (ra + m / n * rb) / least;
      return moved + Ulps(dtype, kComplexUlps, m / n + moved);
    }
    case CoreOp::kPow: {
      if (!exact || m < 0x1p-20 || m > 0x1p20 || n > 0x1p10) return kUnknown;
      return Ulps(dtype, kComplexUlps * (1 + n * (std::abs(std::log(m)) + 4)), LargerPart(y));
    }
    default:
      return kUnknown;
  }
}

}  // namespace

double UnaryRadius(CoreOp op, DType dtype, Uncertain x, Complex128 y) {
  x = Prepared(dtype, x);
  if (!kInexact.Contains(dtype)) return x.radius;
  if (x.radius == kUnknown) return kUnknown;
  if (x.radius > 0 && NeedsExactOperand(op, 0, dtype, dtype)) return kUnknown;
  return Rounded(kComplexes.Contains(dtype) ? ComplexUnary(op, dtype, x, y)
                                            : RealUnary(op, dtype, x.value.real(), x.radius, y.real()));
}

double BinaryRadius(CoreOp op, DType dtype, Uncertain a, Uncertain b, Complex128 y) {
  a = Prepared(dtype, a), b = Prepared(dtype, b);
  if (!kInexact.Contains(dtype)) return std::max(a.radius, b.radius);
  if (a.radius == kUnknown || b.radius == kUnknown) return kUnknown;
  return Rounded(kComplexes.Contains(dtype) ? ComplexBinary(op, dtype, a, b, y)
                                            : RealBinary(op, dtype, a, b, y.real()));
}

double CompareRadius(Uncertain a, Uncertain b) {
  if (a.radius == 0 && b.radius == 0) return 0;
  const double apart = std::max(std::abs(a.value.real() - b.value.real()), std::abs(a.value.imag() - b.value.imag()));
  return apart > Rounded(a.radius + b.radius) ? 0 : kUnknown;
}

double ClampRadius(DType dtype, Uncertain low, Uncertain x, Uncertain high) {
  const double radius =
      std::max({Prepared(dtype, low).radius, Prepared(dtype, x).radius, Prepared(dtype, high).radius});
  return radius > 0 && !kFloats.Contains(dtype) ? kUnknown : radius;
}

double ConvertRadius(DType from, DType to, Uncertain x, Complex128 y) {
  x = Prepared(from, x);
  if (x.radius == 0) return 0;
  if (!kInexact.Contains(from) || !kInexact.Contains(to) || x.radius == kUnknown) return kUnknown;
  if (!IsFinite(y)) return kUnknown;
  return Rounded(x.radius + Ulps(to, 1, LargerPart(y) + x.radius));
}

double LargestOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 65504;
    case DType::kBF16:
      return 0x1.fep127;
    case DType::kF32:
    case DType::kC64:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

int SignificandBits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kF32:
    case DType::kC64:
      return 24;
    default:
      return 53;
  }
}

}  // namespace tensord::property
