#include "engine/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace tensord {
namespace {

// The bytes of a code point, surrogates included, with no look at what is allowed.
std::string Encode(uint32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8Test, EveryCodePointButSurrogates) {
  for (uint32_t c = 0; c < 0x120000; ++c) {
    const bool valid = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
    const std::string bytes = Encode(c);
    ASSERT_EQ(IsUtf8(bytes), valid) << std::hex << c;
    if (bytes.size() > 1) {
      ASSERT_FALSE(IsUtf8(absl::string_view(bytes).substr(0, bytes.size() - 1))) << std::hex << c;
      ASSERT_FALSE(IsUtf8(absl::string_view(bytes).substr(1))) << std::hex << c;
    }
  }
}

TEST(Utf8Test, NoOverlongForms) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_FALSE(IsUtf8("\xc0\x80"));
  EXPECT_FALSE(IsUtf8("\xc1\xbf"));
  EXPECT_FALSE(IsUtf8("\xe0\x9f\xbf"));
  EXPECT_FALSE(IsUtf8("\xf0\x8f\xbf\xbf"));
  EXPECT_FALSE(IsUtf8("\xf8\x88\x80\x80\x80"));
  EXPECT_FALSE(IsUtf8("a\xff"));
}

TEST(Utf8Test, WhatIsNoneBecomesAscii) {
  EXPECT_EQ(ToUtf8("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(ToUtf8("gr\xC3\xBC\xC3"), "gr???");
  EXPECT_EQ(ToUtf8(""), "");
}

TEST(Utf8Test, APrefixCutsNoCharacter) {
  const std::string text =
      "a\xE2\x82\xAC"
      "b";
  EXPECT_EQ(Utf8Prefix(text, 5), text);
  EXPECT_EQ(Utf8Prefix(text, 4), "a\xE2\x82\xAC");
  EXPECT_EQ(Utf8Prefix(text, 3), "a");
  EXPECT_EQ(Utf8Prefix(text, 2), "a");
  EXPECT_EQ(Utf8Prefix(text, 0), "");
  EXPECT_EQ(Utf8Prefix("\x80\x80\x80", 2), "");
}

}  // namespace
}  // namespace tensord
