#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#include "engine/ops/scalar/scalar_math.h"

namespace tensord {

// A real number as one of ordinary size and a power of two: sums and products neither overflow nor underflow. A value.
class ScaledNumber {
 public:
  ScaledNumber() = default;
  explicit ScaledNumber(double x, int64_t exponent = 0) : number_(x) {
    if (x == 0 || !std::isfinite(x)) return;
    const int own = std::ilogb(x) + 1;
    number_ = std::ldexp(x, -own);
    exponent_ = exponent + own;
  }

  // Returns the number, from 1/2 to 1 in size, or 0, or not finite; the second function returns its factor, a power of
  // two.
  double number() const { return number_; }
  int64_t exponent() const { return exponent_; }

  // Divided by that power of two; infinite, or 0, where no double is so large or so small. Rounded once.
  double Over(int64_t exponent) const {
    constexpr int64_t kBeyond = 1 << 16;
    return std::ldexp(number_, static_cast<int>(std::clamp(exponent_ - exponent, -kBeyond, kBeyond)));
  }

  friend ScaledNumber operator*(const ScaledNumber& a, const ScaledNumber& b) {
    return ScaledNumber(a.number_ * b.number_, a.exponent_ + b.exponent_);
  }
  friend ScaledNumber operator-(const ScaledNumber& a) {
    ScaledNumber negative = a;
    negative.number_ = -negative.number_;
    return negative;
  }
  friend ScaledNumber operator+(const ScaledNumber& a, const ScaledNumber& b) {
    if (a.number_ == 0 && b.number_ != 0) return b;
    if (b.number_ == 0 && a.number_ != 0) return a;
    const int64_t exponent = std::max(a.exponent_, b.exponent_);
    return ScaledNumber(a.Over(exponent) + b.Over(exponent), exponent);
  }

 private:
  double number_ = 0;
  int64_t exponent_ = 0;
};

// A product whose factors and partial products neither overflow nor underflow unless the product itself does; for
// complex numbers in neither part, however far apart the two are. T is double or Complex128. Thread-compatible.
template <typename T>
class ScaledProduct {
 public:
  void Multiply(T factor) {
    const ScaledNumber real(std::real(factor));
    if constexpr (scalar::Complex<T>) {
      const ScaledNumber imag(factor.imag());
      const ScaledNumber was = real_;
      real_ = was * real + -(imag_ * imag);
      imag_ = was * imag + imag_ * real;
    } else {
      real_ = real_ * real;
    }
  }

  // Multiplies by a power of two.
  void MultiplyByPowerOfTwo(int64_t exponent) {
    real_ = ScaledNumber(real_.number(), real_.exponent() + exponent);
    imag_ = ScaledNumber(imag_.number(), imag_.exponent() + exponent);
  }

  // Returns the product itself, rounded once.
  T value() const { return Over(0); }

  // p/|p|, and 0 of 0.
  T sign() const {
    const T number = Over(exponent());
    if constexpr (scalar::Complex<T>) {
      return scalar::IsNan(number) ? number : scalar::SignOf(number);
    } else {
      return scalar::Sign{}(number);
    }
  }

  // log |p|: its error is small beside 1, and beside the result.
  double log_modulus() const {
    // Beside 1 without a power of two that cancels.
    const double modulus = std::abs(Over(exponent()));
    const bool is_low = modulus < 0x1.6a09e667f3bcdp-1;
    return std::log(is_low ? modulus * 2 : modulus) +
           static_cast<double>(exponent() - (is_low ? 1 : 0)) * 0x1.62e42fefa39efp-1;
  }

 private:
  // Returns the exponent of the larger part.
  int64_t exponent() const {
    if (real_.number() == 0) return imag_.exponent();
    return imag_.number() == 0 ? real_.exponent() : std::max(real_.exponent(), imag_.exponent());
  }

  T Over(int64_t exponent) const {
    if constexpr (scalar::Complex<T>) {
      return {real_.Over(exponent), imag_.Over(exponent)};
    } else {
      return real_.Over(exponent);
    }
  }

  ScaledNumber real_{1};
  ScaledNumber imag_;  // 0 of real numbers
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_
