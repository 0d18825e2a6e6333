#include "engine/ir/names.h"

#include <string>

#include "engine/base/refusal.h"
#include "engine/base/utf8.h"
#include "gtest/gtest.h"

namespace tensord {
namespace {

TEST(NamesTest, WhatANameMayBe) {
  for (const std::string& name :
       {std::string("x"), std::string("two words"), std::string("\xc3\xa9"), std::string(256, 'a')}) {
    EXPECT_TRUE(CheckName(name, 256, /*reference=*/true).ok()) << name;
    EXPECT_TRUE(CheckName(name, 256, /*reference=*/false).ok()) << name;
  }
  for (const std::string& name :
       {std::string(257, 'a'), std::string("\xff"), std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f")}) {
    EXPECT_EQ(DetailOf(CheckName(name, 256, /*reference=*/true))->reason, "NAME_INVALID") << name;
    EXPECT_EQ(DetailOf(CheckName(name, 256, /*reference=*/false))->reason, "NAME_INVALID") << name;
  }
  for (const std::string& name : {std::string(), std::string("a:0"), std::string(":")}) {
    EXPECT_FALSE(CheckName(name, 256, /*reference=*/true).ok()) << name;
    EXPECT_TRUE(CheckName(name, 256, /*reference=*/false).ok()) << name;
  }
}

TEST(NamesTest, WhatIsPrintedIsShortUtf8) {
  EXPECT_EQ(PrintableName("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(PrintableName("a\nb"), "a\\nb");
  for (const std::string& name :
       {std::string(100'000, '\xff'), std::string(100'000, 'a'), std::string(100'000, '\0')}) {
    EXPECT_LE(PrintableName(name).size(), 300u);
    EXPECT_TRUE(IsUtf8(PrintableName(name)));
  }
  EXPECT_EQ(PrintableMessage("fine"), "fine");
  EXPECT_TRUE(IsUtf8(PrintableMessage("\xff\xfe")));
}

}  // namespace
}  // namespace tensord
