#ifndef TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_
#define TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>

#include "engine/ops/scalar_math.h"

namespace tensord {

// A product as a number of ordinary size and a power of two, so that neither its factors nor their partial products
// overflow or underflow where the product itself does not. T is double or Complex128. Thread-compatible.
template <typename T>
class ScaledProduct {
 public:
  void Multiply(T factor) {
    const int exponent = ExponentOf(factor);
    number_ = Times(number_, Scaled(factor, -exponent));
    const int carried = ExponentOf(number_);
    number_ = Scaled(number_, -carried);
    exponent_ += exponent + carried;
  }

  // The product itself, rounded once.
  T value() const {
    constexpr int64_t kBeyond = 1 << 16;  // infinite, or 0
    return Scaled(number_, static_cast<int>(std::clamp(exponent_, -kBeyond, kBeyond)));
  }

  // p/|p|, and 0 of 0.
  T sign() const {
    if constexpr (scalar::Complex<T>) {
      return scalar::IsNan(number_) ? number_ : scalar::SignOf(number_);
    } else {
      return scalar::Sign{}(number_);
    }
  }

  // log |p|: its error is small beside 1, and beside the result.
  double log_modulus() const {
    // Beside 1 without a power of two that cancels.
    const double modulus = std::abs(number_);
    const bool is_low = modulus < 0x1.6a09e667f3bcdp-1;
    return std::log(is_low ? modulus * 2 : modulus) +
           static_cast<double>(exponent_ - (is_low ? 1 : 0)) * 0x1.62e42fefa39efp-1;
  }

 private:
  // e where the larger part is from 2^(e-1) to 2^e; 0 of 0 and of what is not finite.
  static int ExponentOf(T x) {
    const double size = std::max(std::abs(std::real(x)), std::abs(std::imag(x)));
    if (size == 0 || !std::isfinite(std::real(x)) || !std::isfinite(std::imag(x))) return 0;
    return std::ilogb(size) + 1;
  }

  static T Scaled(T x, int exponent) {
    if constexpr (scalar::Complex<T>) {
      return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
    } else {
      return std::ldexp(x, exponent);
    }
  }

  static T Times(T a, T b) {
    if constexpr (scalar::Complex<T>) {
      return scalar::Product(a, b);
    } else {
      return a * b;
    }
  }

  T number_ = T(1);
  int64_t exponent_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_FAMILIES_LINALG_SCALED_PRODUCT_H_
