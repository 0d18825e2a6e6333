#include "proto/checksum/crc32c.h"

#include <cstdint>
#include <numeric>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

// Bit by bit, from the definition.
uint32_t Defined(absl::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

TEST(Crc32cTest, PublishedValues) {
  std::string rising(32, '\0'), falling(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  std::iota(falling.rbegin(), falling.rend(), '\0');
  const struct {
    std::string bytes;
    uint32_t crc;
  } cases[] = {{"", 0},
               {"123456789", 0xE3069283},
               // RFC 3720, B.4.
               {std::string(32, '\0'), 0x8A9136AA},
               {std::string(32, '\xFF'), 0x62A8AB43},
               {rising, 0x46DD794E},
               {falling, 0x113FDB5C}};
  for (const auto& c : cases) {
    EXPECT_EQ(Crc32c(c.bytes), c.crc);
    for (const Crc32cWay& way : Crc32cWays()) EXPECT_EQ(way.extend(0, c.bytes), c.crc);
  }
}

TEST(Crc32cTest, EveryLengthAndPlaceAndCut) {
  std::mt19937_64 random(1);
  std::string bytes(300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t length = 0; length < 70; ++length) {
      const absl::string_view part = absl::string_view(bytes).substr(begin, length);
      const uint32_t expected = Defined(part);
      EXPECT_EQ(Crc32c(part), expected);
      const size_t cut = length / 3;
      for (const Crc32cWay& way : Crc32cWays()) {
        EXPECT_EQ(way.extend(0, part), expected);
        EXPECT_EQ(way.extend(way.extend(0, part.substr(0, cut)), part.substr(cut)), expected);
        std::string copy(length + 2, '#');
        EXPECT_EQ(way.copy(way.copy(0, part.substr(0, cut), copy.data() + 1), part.substr(cut), copy.data() + 1 + cut),
                  expected);
        EXPECT_EQ(copy, absl::StrCat("#", part, "#"));
      }
      EXPECT_EQ(ExtendCrc32c(Crc32c(part.substr(0, cut)), part.substr(cut)), expected);
    }
  }
  EXPECT_EQ(Crc32c(bytes), Defined(bytes));
}

TEST(Crc32cTest, LongOnes) {
  std::mt19937_64 random(2);
  std::string bytes(20'000, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  std::string copy(bytes.size() + 64, '\0');
  for (const size_t length :
       {1023, 1024, 1025, 1279, 1280, 1281, 1535, 2048, 3071, 3072, 3073, 6143, 6144, 6150, 9999, 19'997}) {
    for (size_t begin = 0; begin < 3; ++begin) {
      const absl::string_view part = absl::string_view(bytes).substr(begin, length);
      const uint32_t expected = Defined(part);
      EXPECT_EQ(Crc32c(part), expected) << length;
      for (const Crc32cWay& way : Crc32cWays()) {
        EXPECT_EQ(way.extend(0, part), expected) << length;
        EXPECT_EQ(way.extend(way.extend(0, part.substr(0, 1000)), part.substr(1000)), expected) << length;
        EXPECT_EQ(way.copy(0, part, copy.data() + begin), expected) << length;
        EXPECT_TRUE(absl::string_view(copy).substr(begin, length) == part) << length;
      }
    }
  }
}

TEST(Crc32cTest, CopiesOfSmallAndLargeThings) {
  const std::string bytes = "some bytes that are copied";
  for (const int64_t whole : {int64_t{26}, int64_t{1} << 30}) {
    std::string copy(bytes.size() + 1, '#');
    const uint32_t first = CopyWithCrc32c(0, absl::string_view(bytes).substr(0, 7), copy.data(), whole);
    EXPECT_EQ(CopyWithCrc32c(first, absl::string_view(bytes).substr(7), copy.data() + 7, whole), Defined(bytes));
    EXPECT_EQ(copy, bytes + "#");
  }
}

}  // namespace
}  // namespace tensord
