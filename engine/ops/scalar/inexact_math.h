#ifndef TENSORD_ENGINE_OPS_SCALAR_INEXACT_MATH_H_
#define TENSORD_ENGINE_OPS_SCALAR_INEXACT_MATH_H_

#include <algorithm>
#include <cmath>
#include <complex>

#include "engine/tensor/dtype.h"

// The elementary functions that the standard library lacks, or computes badly for complex arguments, on the widest
// types. The functors of scalar_math.h evaluate them.
namespace tensord::scalar {

inline double ExpOf(double x) { return std::exp(x); }
// exp(±∞ + 0i) and exp(x + 0i) stay real: the imaginary part keeps its zero.
inline Complex128 ExpOf(Complex128 z) {
  if (z.imag() == 0) return {std::exp(z.real()), z.imag()};
  return std::exp(z);
}

inline double Exp2Of(double x) { return std::exp2(x); }
// The product with log 2 has as many wrong digits as it has before its point, so there are more to begin with.
inline Complex128 Exp2Of(Complex128 z) {
  constexpr long double kLn2 = 0.693147180559945309417232121458176568L;
  if (z.imag() == 0) return {std::exp2(z.real()), z.imag()};
  if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) return std::exp(z * static_cast<double>(kLn2));
  return Complex128(std::exp(std::complex<long double>(z) * kLn2));
}

inline double Expm1Of(double x) { return std::expm1(x); }
inline Complex128 Expm1Of(Complex128 z) {
  const double half_sine = std::sin(z.imag() / 2);
  const double expm1 = std::expm1(z.real());
  const double sine = std::sin(z.imag());
  return {expm1 * std::cos(z.imag()) - 2 * half_sine * half_sine, sine == 0 ? sine : std::exp(z.real()) * sine};
}

inline double Log1pOf(double x) { return std::log1p(x); }
inline Complex128 Log1pOf(Complex128 z) {
  const Complex128 sum(1 + z.real(), z.imag());
  if (std::abs(z.real()) > 1e100 || std::abs(z.imag()) > 1e100 || std::isnan(z.real()) || std::isnan(z.imag())) {
    return std::log(sum);
  }
  const long double x = z.real(), y = z.imag();
  const long double excess = x * (2 + x) + y * y;  // |1 + z|^2 - 1
  if (excess < -0.5L) return std::log(sum);        // the excess has lost digits, 1 + z has not
  return {static_cast<double>(std::log1p(excess) / 2), std::atan2(z.imag(), sum.real())};
}

// log z / log b, of numbers on an axis as exact as the real function is.
inline Complex128 LogToBase(Complex128 z, double (*real_log)(double), double per_log) {
  const Complex128 log = std::log(z);
  const bool is_on_axis = z.real() == 0 || z.imag() == 0;
  return {is_on_axis ? real_log(std::abs(z.real()) + std::abs(z.imag())) : log.real() * per_log, log.imag() * per_log};
}
inline double Log2Of(double x) { return std::log2(x); }
inline Complex128 Log2Of(Complex128 z) { return LogToBase(z, &Log2Of, 0x1.71547652b82fep+0); }
inline double Log10Of(double x) { return std::log10(x); }
inline Complex128 Log10Of(Complex128 z) { return LogToBase(z, &Log10Of, 0x1.bcb7b1526e50ep-2); }

inline double LogisticOf(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);  // e^-x would overflow where the result is still a number
  return e / (1 + e);
}
inline Complex128 LogisticOf(Complex128 z) {
  if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) return 1.0 / (1.0 + std::exp(-z));
  // Works on w with w.real() <= 0, so that e^w does not overflow. Beside the poles 1 + e^w would cancel.
  const bool is_right = z.real() >= 0;
  const Complex128 w = is_right ? -z : z;
  const Complex128 e = ExpOf(w);
  const double half_cosine = std::cos(w.imag() / 2);
  const Complex128 sum(2 * half_cosine * half_cosine + std::cos(w.imag()) * std::expm1(w.real()), e.imag());
  return (is_right ? Complex128(1) : e) / sum;
}

inline double RsqrtOf(double x) { return 1 / std::sqrt(x); }
inline Complex128 RsqrtOf(Complex128 z) {
  if (std::isinf(z.real()) || std::isinf(z.imag())) {
    return std::isnan(z.real()) || std::isnan(z.imag()) ? Complex128(0, 0)
                                                        : Complex128(0, std::copysign(0.0, -z.imag()));
  }
  return 1.0 / std::sqrt(z);
}

// Returns a power of eight: times it, z has a modulus that neither overflows nor loses digits.
inline double ScaleForModulus(Complex128 z) {
  const double size = std::max(std::abs(z.real()), std::abs(z.imag()));
  return size < 0x1p-900 ? 0x1p600 : size > 0x1p1000 ? 0x1p-600 : 1;
}

inline double CbrtOf(double x) { return std::cbrt(x); }
inline Complex128 CbrtOf(Complex128 z) {
  if (z == Complex128(0, 0)) return z;
  const double scale = ScaleForModulus(z);
  const double root = std::cbrt(std::hypot(z.real() * scale, z.imag() * scale));
  return std::polar(root * (scale > 1 ? 0x1p-200 : scale < 1 ? 0x1p200 : 1), std::arg(z) / 3);
}

inline Complex128 SignOf(Complex128 z) {
  if (z == Complex128(0, 0)) return z;
  const Complex128 scaled = z * ScaleForModulus(z);
  return scaled / std::hypot(scaled.real(), scaled.imag());
}

inline Complex64 PowOf(Complex64 a, Complex64 b) { return Complex64(std::pow(Complex128(a), Complex128(b))); }
// e^(b log a) has as many wrong digits as b log a has before its point, so there are more to begin with.
inline Complex128 PowOf(Complex128 a, Complex128 b) {
  return Complex128(std::pow(std::complex<long double>(a), std::complex<long double>(b)));
}

}  // namespace tensord::scalar

#endif  // TENSORD_ENGINE_OPS_SCALAR_INEXACT_MATH_H_
