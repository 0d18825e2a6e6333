// The two 16-bit floating-point element types as storage: C++20 has no arithmetic type for them.
#ifndef TENSORD_HALF_TYPES_H_
#define TENSORD_HALF_TYPES_H_

#include <cstdint>

namespace tensord::client {

// IEEE 754 binary16. Conversion from float rounds to nearest even; too large becomes infinity, NaN stays NaN.
struct Half {
  uint16_t bits = 0;

  static Half FromFloat(float value);
  float ToFloat() const;
};

// The upper half of an IEEE 754 binary32. Conversion as for Half.
struct BFloat16 {
  uint16_t bits = 0;

  static BFloat16 FromFloat(float value);
  float ToFloat() const;
};

}  // namespace tensord::client

#endif  // TENSORD_HALF_TYPES_H_
