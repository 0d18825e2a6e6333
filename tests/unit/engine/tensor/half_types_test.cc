#include "engine/tensor/half_types.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace tensord {
namespace {

// The parameters of a format, for the slow and obvious way.
struct Format {
  int mantissa_bits;
  int exponent_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t infinity() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }
};
constexpr Format kFloat16 = {.mantissa_bits = 10, .exponent_bits = 5};
constexpr Format kBFloat16 = {.mantissa_bits = 7, .exponent_bits = 8};

// The finite value of a bit pattern without its sign, by the definition of the format.
double ValueOf(const Format& format, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const double fraction =
      std::ldexp(static_cast<double>(magnitude & ((1u << format.mantissa_bits) - 1)), -format.mantissa_bits);
  if (exponent == 0) return std::ldexp(fraction, 1 - format.bias());
  return std::ldexp(1 + fraction, exponent - format.bias());
}

// The nearest value's bits, ties to the even pattern: a search among the neighbours. Finite x >= 0.
uint32_t NearestBits(const Format& format, double x) {
  uint32_t low = 0, high = format.infinity();  // the value of infinity's pattern is where the next finite one would be
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (ValueOf(format, middle) <= x ? low : high) = middle;
  }
  const double below = ValueOf(format, low), above = ValueOf(format, high);
  if (x - below < above - x) return low;
  if (x - below > above - x) return high;
  return low % 2 == 0 ? low : high;
}

template <typename Half>
void ExpectNearest(const Format& format, double x) {
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::abs(x);
  const bool huge = magnitude >= 2 * ValueOf(format, format.infinity());
  const uint32_t expected = sign | (huge ? format.infinity() : NearestBits(format, magnitude));
  ASSERT_EQ(Half(x).bits, expected) << std::hexfloat << x;
  const float as_float = static_cast<float>(x);
  if (static_cast<double>(as_float) == x) {
    ASSERT_EQ(Half(as_float).bits, expected) << std::hexfloat << as_float;
  }
}

template <typename Half>
void EveryPattern(const Format& format) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half = Half::FromBits(static_cast<uint16_t>(bits));
    const float value = static_cast<float>(half);
    const uint32_t magnitude = bits & 0x7fff;
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << std::hex << bits;
    if (magnitude > format.infinity()) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << bits;
      // Quiet, and with its sign.
      for (const Half again : {Half(value), Half(static_cast<double>(value))}) {
        ASSERT_TRUE(std::isnan(static_cast<float>(again))) << std::hex << bits;
        ASSERT_EQ(again.bits & 0x8000, bits & 0x8000) << std::hex << bits;
        ASSERT_NE(again.bits & (1 << (format.mantissa_bits - 1)), 0) << std::hex << bits;
      }
      continue;
    }
    if (magnitude == format.infinity()) {
      ASSERT_TRUE(std::isinf(value)) << std::hex << bits;
    } else {
      ASSERT_EQ(std::abs(static_cast<double>(value)), ValueOf(format, magnitude)) << std::hex << bits;
    }
    ASSERT_EQ(Half(value).bits, bits) << std::hex << bits;
    ASSERT_EQ(Half(static_cast<double>(value)).bits, bits) << std::hex << bits;
  }
}

// Around every value and every midpoint between two of them.
template <typename Half>
void EveryRounding(const Format& format) {
  for (uint32_t bits = 0; bits < format.infinity(); ++bits) {
    const double here = ValueOf(format, bits), middle = (here + ValueOf(format, bits + 1)) / 2;
    for (const double x : {here, middle}) {
      for (const double sign : {1.0, -1.0}) {
        ExpectNearest<Half>(format, sign * x);
        ExpectNearest<Half>(format, sign * std::nextafter(x, std::numeric_limits<double>::infinity()));
        ExpectNearest<Half>(format, sign * static_cast<double>(std::nextafter(static_cast<float>(x), 1e38f)));
        if (x == 0) continue;
        ExpectNearest<Half>(format, sign * std::nextafter(x, 0.0));
        ExpectNearest<Half>(format, sign * static_cast<double>(std::nextafter(static_cast<float>(x), 0.0f)));
      }
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

template <typename Half>
void RandomFloats(const Format& format, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const float f = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const double d = std::bit_cast<double>(random());
    for (const double x : {static_cast<double>(f), d}) {
      if (std::isfinite(x)) ExpectNearest<Half>(format, x);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Float16Test, EveryPatternIsItsValueAndComesBack) { EveryPattern<Float16>(kFloat16); }
TEST(Float16Test, RoundsToNearestEven) { EveryRounding<Float16>(kFloat16); }
TEST(Float16Test, RoundsRandomNumbersOnce) { RandomFloats<Float16>(kFloat16, 1); }
TEST(BFloat16Test, EveryPatternIsItsValueAndComesBack) { EveryPattern<BFloat16>(kBFloat16); }
TEST(BFloat16Test, RoundsToNearestEven) { EveryRounding<BFloat16>(kBFloat16); }
TEST(BFloat16Test, RoundsRandomNumbersOnce) { RandomFloats<BFloat16>(kBFloat16, 2); }

TEST(HalfTypesTest, InfinityStays) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Float16(infinity).bits, 0x7c00);
  EXPECT_EQ(Float16(-infinity).bits, 0xfc00);
  EXPECT_EQ(BFloat16(infinity).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-static_cast<double>(infinity)).bits, 0xff80);
}

}  // namespace
}  // namespace tensord
