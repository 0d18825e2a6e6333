#ifndef TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_COMPLEX_H_
#define TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_COMPLEX_H_

#include "tests/testlib/numbers/exact_real.h"

// Complex functions for finite arguments whose results are of ordinary size, as the textbook writes them: the mantissa
// of exact::Wide is long enough for what they cancel.
namespace tensord::exact {

struct WideComplex {
  Wide re = 0;
  Wide im = 0;
};

inline WideComplex operator-(WideComplex a) { return {-a.re, -a.im}; }
inline WideComplex operator+(WideComplex a, WideComplex b) { return {a.re + b.re, a.im + b.im}; }
inline WideComplex operator-(WideComplex a, WideComplex b) { return {a.re - b.re, a.im - b.im}; }
inline WideComplex operator*(WideComplex a, WideComplex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
inline WideComplex operator/(WideComplex a, WideComplex b) {
  const Wide norm = b.re * b.re + b.im * b.im;
  return {(a.re * b.re + a.im * b.im) / norm, (a.im * b.re - a.re * b.im) / norm};
}

inline Wide Modulus(WideComplex z) { return Hypot(z.re, z.im); }
inline WideComplex Polar(Wide modulus, Wide angle) { return {modulus * Cos(angle), modulus * Sin(angle)}; }
inline WideComplex Exp(WideComplex z) { return Polar(Exp(z.re), z.im); }
inline WideComplex Log(WideComplex z) { return {Log(Modulus(z)), Atan2(z.im, z.re)}; }
inline WideComplex LogToBase(WideComplex z, Wide base) {
  const WideComplex log = Log(z);
  return {log.re / Log(base), log.im / Log(base)};
}
inline WideComplex Exp2(WideComplex z) { return Exp({z.re * Log(Wide(2)), z.im * Log(Wide(2))}); }
inline WideComplex Sin(WideComplex z) { return {Sin(z.re) * Cosh(z.im), Cos(z.re) * Sinh(z.im)}; }
inline WideComplex Cos(WideComplex z) { return {Cos(z.re) * Cosh(z.im), -Sin(z.re) * Sinh(z.im)}; }
inline WideComplex Tan(WideComplex z) { return Sin(z) / Cos(z); }
inline WideComplex Tanh(WideComplex z) {
  const WideComplex turned = Tan({-z.im, z.re});  // tanh z = -i tan(i z)
  return {turned.im, -turned.re};
}
inline WideComplex Sqrt(WideComplex z) {
  const Wide larger = Sqrt((Modulus(z) + Fabs(z.re)) / 2);
  if (larger == 0) return z;
  const Wide smaller = Fabs(z.im) / (2 * larger);
  return z.re >= 0 ? WideComplex{larger, CopySign(smaller, z.im)} : WideComplex{smaller, CopySign(larger, z.im)};
}
inline WideComplex Sinh(WideComplex z) { return {Sinh(z.re) * Cos(z.im), Cosh(z.re) * Sin(z.im)}; }
inline WideComplex Cosh(WideComplex z) { return {Cosh(z.re) * Cos(z.im), Sinh(z.re) * Sin(z.im)}; }
// W. Kahan, Branch Cuts for Complex Elementary Functions (1987): products of square roots that do not cancel.
inline WideComplex Asin(WideComplex z) {
  const WideComplex below = Sqrt({1 - z.re, -z.im}), above = Sqrt({1 + z.re, z.im});
  return {Atan2(z.re, below.re * above.re - below.im * above.im), Asinh(below.re * above.im - below.im * above.re)};
}
inline WideComplex Acos(WideComplex z) {
  const WideComplex below = Sqrt({1 - z.re, -z.im}), above = Sqrt({1 + z.re, z.im});
  return {2 * Atan2(below.re, above.re), Asinh(above.re * below.im - above.im * below.re)};
}
inline WideComplex Asinh(WideComplex z) {
  const WideComplex turned = Asin({-z.im, z.re});  // asinh z = -i asin(i z)
  return {turned.im, -turned.re};
}
inline WideComplex Acosh(WideComplex z) {
  const WideComplex turned = Acos(z);
  return {Fabs(turned.im), CopySign(turned.re, z.im)};
}
inline WideComplex Atanh(WideComplex z) {
  const Wide x = Fabs(z.re);
  const Wide re = Log1p(4 * x / ((1 - x) * (1 - x) + z.im * z.im)) / 4;
  return {CopySign(re, z.re), Atan2(2 * z.im, (1 - x) * (1 + x) - z.im * z.im) / 2};
}
inline WideComplex Atan(WideComplex z) {
  const WideComplex turned = Atanh({-z.im, z.re});  // atan z = -i atanh(i z)
  return {turned.im, -turned.re};
}
inline WideComplex Cbrt(WideComplex z) { return Polar(Cbrt(Modulus(z)), Atan2(z.im, z.re) / 3); }
inline WideComplex Expm1(WideComplex z) {
  const Wide half_sine = Sin(z.im / 2);
  return {Expm1(z.re) * Cos(z.im) - 2 * half_sine * half_sine, Exp(z.re) * Sin(z.im)};
}
inline WideComplex Log1p(WideComplex z) { return {Log1p(z.re * (2 + z.re) + z.im * z.im) / 2, Atan2(z.im, 1 + z.re)}; }
inline WideComplex Logistic(WideComplex z) { return WideComplex{1, 0} / (WideComplex{1, 0} + Exp(-z)); }
inline WideComplex Pow(WideComplex a, WideComplex b) { return Exp(b * Log(a)); }
inline WideComplex Sign(WideComplex z) {
  const Wide modulus = Modulus(z);
  return modulus == 0 ? z : WideComplex{z.re / modulus, z.im / modulus};
}

}  // namespace tensord::exact

#endif  // TENSORD_TESTS_TESTLIB_NUMBERS_EXACT_COMPLEX_H_
