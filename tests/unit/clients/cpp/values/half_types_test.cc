#include "tensord/dtype.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace tensord::client {
namespace {

TEST(Half, EveryFiniteValueSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
    const Half half{static_cast<uint16_t>(bits)};
    if (std::isnan(half.ToFloat())) {
      EXPECT_TRUE(std::isnan(Half::FromFloat(half.ToFloat()).ToFloat()));
    } else {
      EXPECT_EQ(Half::FromFloat(half.ToFloat()).bits, bits);
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(Half::FromFloat(1.0f).bits, 0x3c00);
  // Halfway between 1 and the next number goes to the even one, anything above it up.
  EXPECT_EQ(Half::FromFloat(1.0f + std::ldexp(1.0f, -11)).bits, 0x3c00);
  EXPECT_EQ(Half::FromFloat(1.0f + std::ldexp(3.0f, -11)).bits, 0x3c02);
  EXPECT_EQ(Half::FromFloat(std::nextafter(1.0f + std::ldexp(1.0f, -11), 2.0f)).bits, 0x3c01);
  // The same among subnormal numbers.
  EXPECT_EQ(Half::FromFloat(std::ldexp(1.0f, -25)).bits, 0x0000);
  EXPECT_EQ(Half::FromFloat(std::ldexp(3.0f, -25)).bits, 0x0002);
  EXPECT_EQ(Half::FromFloat(-std::ldexp(1.0f, -24)).bits, 0x8001);
}

TEST(Half, OverflowsToInfinityAtTheMidpoint) {
  EXPECT_EQ(Half::FromFloat(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half::FromFloat(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half::FromFloat(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
}

TEST(BFloat16, EveryFiniteValueSurvivesARoundTrip) {
  for (uint32_t bits = 0; bits <= UINT16_MAX; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    if (std::isnan(value.ToFloat())) {
      EXPECT_TRUE(std::isnan(BFloat16::FromFloat(value.ToFloat()).ToFloat()));
    } else {
      EXPECT_EQ(BFloat16::FromFloat(value.ToFloat()).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  EXPECT_EQ(BFloat16::FromFloat(1.0f + std::ldexp(1.0f, -8)).bits, 0x3f80);
  EXPECT_EQ(BFloat16::FromFloat(1.0f + std::ldexp(3.0f, -8)).bits, 0x3f82);
  EXPECT_EQ(BFloat16::FromFloat(std::numeric_limits<float>::max()).bits, 0x7f80);
}

}  // namespace
}  // namespace tensord::client
