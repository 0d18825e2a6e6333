#ifndef TENSORD_ENGINE_TENSOR_HALF_TYPES_H_
#define TENSORD_ENGINE_TENSOR_HALF_TYPES_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace tensord {

// 16-bit floating-point values as bit patterns. They have no arithmetic: they convert to float, and from float or
// double with one rounding to nearest even. NaN stays a (quiet) NaN with its sign.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value);
  explicit Float16(double value);
  explicit operator float() const;
  static Float16 FromBits(uint16_t bits) {
    Float16 h;
    h.bits = bits;
    return h;
  }
};

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value);
  explicit BFloat16(double value);
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static BFloat16 FromBits(uint16_t bits) {
    BFloat16 b;
    b.bits = bits;
    return b;
  }
};

namespace half_types_internal {

// Rounds the double to odd as a float: rounding the float again to 16 bits gives the result of one rounding.
inline float RoundToOdd(double value) {
  const float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  // Step back to the truncated value, then set the last bit.
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace half_types_internal

inline Float16::Float16(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>(f >> 16 & 0x8000);
  const uint32_t magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN
    bits = static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
  } else if (magnitude >= 0x477ff000) {  // rounds to infinity: at least 65520
    bits = static_cast<uint16_t>(sign | 0x7c00);
  } else if (magnitude < 0x38800000) {  // subnormal in 16 bits: scaled so that the float adder rounds
    const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000));
  } else {
    const uint32_t odd = magnitude >> 13 & 1;
    bits = static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
  }
}

inline Float16::Float16(double value) : Float16(half_types_internal::RoundToOdd(value)) {}

inline Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
}

inline BFloat16::BFloat16(float value) {
  const uint32_t f = std::bit_cast<uint32_t>(value);
  if ((f & 0x7fffffff) > 0x7f800000) {
    bits = static_cast<uint16_t>(f >> 16 | 0x40);
  } else {
    bits = static_cast<uint16_t>((f + 0x7fff + (f >> 16 & 1)) >> 16);
  }
}

inline BFloat16::BFloat16(double value) : BFloat16(half_types_internal::RoundToOdd(value)) {}

}  // namespace tensord

#endif  // TENSORD_ENGINE_TENSOR_HALF_TYPES_H_
