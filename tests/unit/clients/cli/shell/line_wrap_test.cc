#include "clients/cli/shell/line_wrap.h"

#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

TEST(WrapLine, BreaksAtBlanks) {
  EXPECT_EQ(WrapLine("", 5, 2), "");
  EXPECT_EQ(WrapLine("one two", 7, 2), "one two");
  EXPECT_EQ(WrapLine("one two", 6, 2), "one\n  two");
  EXPECT_EQ(WrapLine("one two three", 7, 0), "one two\nthree");
  EXPECT_EQ(WrapLine("  one   two", 8, 4), "  one\n    two") << "blanks in front are no place to break";
}

TEST(WrapLine, KeepsLongWordsWhole) {
  EXPECT_EQ(WrapLine("abcdef gh", 3, 1), "abcdef\n gh");
  EXPECT_EQ(WrapLine("a bcdefgh", 3, 1), "a\n bcdefgh");
  EXPECT_EQ(WrapLine("a b", 0, 9), "a\n         b");
}

TEST(WrapLine, CountsCharacters) {
  EXPECT_EQ(ColumnsOf("FILE\u2026"), 5u);
  EXPECT_EQ(WrapLine("\u2026\u2026 \u2026", 4, 0), "\u2026\u2026 \u2026");
}

TEST(WrapLines, WrapsEachLine) { EXPECT_EQ(WrapLines("a b\nc\n", 2, 1), "a\n b\nc\n"); }

}  // namespace
}  // namespace tensord::cli
