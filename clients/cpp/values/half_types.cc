#include "tensord/dtype.h"

#include <bit>
#include <cmath>

namespace tensord::client {
namespace {

constexpr int kSignificandBitsDropped = 13;  // 23 of binary32 less 10 of binary16

}  // namespace

Half Half::FromFloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return Half{static_cast<uint16_t>(sign | 0x7e00u)};
  // 65520 is the midpoint above the greatest finite binary16, and rounds up to infinity.
  if (magnitude >= 0x477ff000u) return Half{static_cast<uint16_t>(sign | 0x7c00u)};
  if (magnitude < 0x38800000u) {
    // Subnormal result: the sum's last significand bit weighs 2^-24, so the addition itself rounds to nearest even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return Half{static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)))};
  }
  const uint32_t is_odd = (magnitude >> kSignificandBitsDropped) & 1u;
  const uint32_t rounded = magnitude + 0xfffu + is_odd;
  const uint32_t rebiased = (rounded >> kSignificandBitsDropped) - ((127u - 15u) << 10);
  return Half{static_cast<uint16_t>(sign | rebiased)};
}

float Half::ToFloat() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t significand = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | (significand << kSignificandBitsDropped));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(significand), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) | (significand << kSignificandBitsDropped));
}

BFloat16 BFloat16::FromFloat(float value) {
  const uint32_t bits_of_float = std::bit_cast<uint32_t>(value);
  if ((bits_of_float & 0x7fffffffu) > 0x7f800000u) {
    return BFloat16{static_cast<uint16_t>((bits_of_float >> 16) | 0x40u)};
  }
  const uint32_t is_odd = (bits_of_float >> 16) & 1u;
  return BFloat16{static_cast<uint16_t>((bits_of_float + 0x7fffu + is_odd) >> 16)};
}

float BFloat16::ToFloat() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace tensord::client
