// Text of others on a terminal.
#include "clients/cli/shell/printable_text.h"

#include <sstream>
#include <string>

#include "clients/cli/shell/console.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrintableText, HasNoControlCharacters) {
  EXPECT_EQ(PrintableLine("a\x1b[2J\r\n\tb\x7f"), "a\\x1b[2J\\x0d\\x0a\\x09b\\x7f");
  EXPECT_EQ(PrintableText("a\x1b[2J\r\n\tb"), "a\\x1b[2J\\x0d\n\tb");
  EXPECT_EQ(PrintableLine(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(PrintableLine("\xc2\x9b"
                          "2J"),
            "\\xc2\\x9b2J")
      << "the escape sequence's one character";
  EXPECT_EQ(PrintableLine("\x9b"
                          "2J"),
            "\\x9b2J")
      << "the same of terminals without UTF-8";
  EXPECT_EQ(PrintableLine("a\u202eb\u2066\u200f\u061c\u2028"),
            "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6\\xe2\\x80\\x8f\\xd8\\x9c\\xe2\\x80\\xa8");
  EXPECT_EQ(PrintableLine("\xe2\x80"), "\xe2\\x80") << "a character that is cut off";
  for (const char* whole : {"", "\\x", "עברית 日本 😀", "größer als 3 ≥ 2", "\xc2\xa0", "\xc2"})
    EXPECT_EQ(PrintableLine(whole), whole);
}

TEST(PrintableText, IsAllThatAFailureShows) {
  std::ostringstream out, err;
  Console console(out, err);
  console.Fail(absl::InternalError("one\x1b]0;title\x07\ntwo"));
  EXPECT_EQ(err.str(), "tensordctl: INTERNAL: one\\x1b]0;title\\x07\ntwo\n");
  console.Complain("\x1b[2J");
  console.Usage("run", "\x1b[2J");
  console.Hint("\x1b[2J");
  EXPECT_THAT(err.str(), Not(HasSubstr("\x1b")));
}

TEST(PrintableText, IsAllThatAResultShows) {
  std::ostringstream out, err;
  Console(out, err).Print("one\x1b[2J\ntwo\n");
  EXPECT_EQ(out.str(), "one\\x1b[2J\ntwo\n");
}

}  // namespace
}  // namespace tensord::cli
