#include "server/observe/logs/json_line.h"

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace tensord::server {
namespace {

std::string Line(absl::string_view text) {
  JsonLine line;
  line.Add("t", text);
  return std::move(line).Take();
}

TEST(JsonLineTest, FieldsInOrder) {
  JsonLine line;
  line.Add("a", "x").Add("b", int64_t{-3});
  EXPECT_EQ(std::move(line).Take(), R"({"a":"x","b":-3})");
  EXPECT_EQ(JsonLine().Take(), "{}");
}

TEST(JsonLineTest, EscapesWhatJsonDoesNotHold) {
  EXPECT_EQ(Line("\"\\\n"), R"({"t":"\"\\\n"})");
  EXPECT_EQ(Line(absl::string_view("\0\x1f\x7f", 3)), R"({"t":"\u0000\u001f\u007f"})");
  EXPECT_EQ(Line("grüße 漢 𝄞"), "{\"t\":\"grüße 漢 𝄞\"}");
}

TEST(JsonLineTest, ReplacesWhatIsNoUtf8) {
  const std::string kReplacement = "\xEF\xBF\xBD";
  EXPECT_EQ(Line("\xff"), "{\"t\":\"" + kReplacement + "\"}");
  EXPECT_EQ(Line("a\xC3"), "{\"t\":\"a" + kReplacement + "\"}");                                      // cut off
  EXPECT_EQ(Line("\xC0\x80"), "{\"t\":\"" + kReplacement + kReplacement + "\"}");                     // overlong
  EXPECT_EQ(Line("\xED\xA0\x80"), "{\"t\":\"" + kReplacement + kReplacement + kReplacement + "\"}");  // surrogate
  EXPECT_EQ(Line("\xF4\x90\x80\x80").size(), 8 + 4 * kReplacement.size());                            // past U+10FFFF
}

}  // namespace
}  // namespace tensord::server
