#ifndef TENSORD_ENGINE_OPS_INEXACT_MATH_H_
#define TENSORD_ENGINE_OPS_INEXACT_MATH_H_

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

inline double Expm1Of(double x) { return std::expm1(x); }
inline Complex128 Expm1Of(Complex128 z) {
  const double half_sine = std::sin(z.imag() / 2);
  const double expm1 = std::expm1(z.real());
  const double sine = std::sin(z.imag());
  return {expm1 * std::cos(z.imag()) - 2 * half_sine * half_sine, sine == 0 ? sine : std::exp(z.real()) * sine};
}

inline double Log1pOf(double x) { return std::log1p(x); }
inline Complex128 Log1pOf(Complex128 z) {
  const double angle = std::atan2(z.imag(), 1 + z.real());
  const long double x = z.real(), y = z.imag();
  if (std::abs(z.real()) > 1e100 || std::abs(z.imag()) > 1e100 || std::isnan(z.real()) || std::isnan(z.imag())) {
    return std::log(Complex128(1 + z.real(), z.imag()));
  }
  return {static_cast<double>(std::log1p(x * (2 + x) + y * y) / 2), angle};
}

inline double LogisticOf(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);  // e^-x would overflow where the result is still a number
  return e / (1 + e);
}
inline Complex128 LogisticOf(Complex128 z) { return 1.0 / (1.0 + std::exp(-z)); }

inline double RsqrtOf(double x) { return 1 / std::sqrt(x); }
inline Complex128 RsqrtOf(Complex128 z) {
  if (std::isinf(z.real()) || std::isinf(z.imag())) {
    return std::isnan(z.real()) || std::isnan(z.imag()) ? Complex128(0, 0)
                                                        : Complex128(0, std::copysign(0.0, -z.imag()));
  }
  return 1.0 / std::sqrt(z);
}

inline double CbrtOf(double x) { return std::cbrt(x); }
inline Complex128 CbrtOf(Complex128 z) {
  if (z == Complex128(0, 0)) return z;
  return std::polar(std::cbrt(std::hypot(z.real(), z.imag())), std::arg(z) / 3);
}

}  // namespace tensord::scalar

#endif  // TENSORD_ENGINE_OPS_INEXACT_MATH_H_
