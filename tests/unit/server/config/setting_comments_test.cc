#include "server/config/setting_comments.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"

namespace tensord::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SettingCommentsTest, StandBeforeFieldsAndMessages) {
  auto comments = CommentsOf(
      "// Of the file.\nsyntax = \"proto2\";\n\nmessage All {\n  // One,\n  //   two.\n  repeated string a = 1;\n"
      "  optional In in = 2;\n\n  // Of nothing.\n\n  optional bool b = 3;\n  // Of the message.\n  message In {\n"
      "    optional int64 x = 1 [default = 2];\n    // Of y.\n    optional int64 y = 2;\n  }\n}\n");
  EXPECT_THAT(comments["a"], ElementsAre("One,", "  two."));
  EXPECT_THAT(comments["In"], ElementsAre("Of the message."));
  EXPECT_THAT(comments["In.y"], ElementsAre("Of y."));
  EXPECT_THAT(comments["b"], IsEmpty());
  EXPECT_THAT(comments["In.x"], IsEmpty());
}

TEST(SettingCommentsTest, DefaultsAreExplainedAndReadBack) {
  const std::string printed = PrintDefaultConfig();
  ServerConfig config;
  const absl::Status read = MergeConfigText(printed, &config);
  ASSERT_TRUE(read.ok()) << read << printed;
  EXPECT_EQ(PrintConfig(config), PrintConfig(ServerConfig()));
  EXPECT_THAT(printed, HasSubstr("  # One request, below 2 GiB.\n  message_bytes: 1073741824  # 1024 to 2147483647\n"));
  EXPECT_THAT(printed, HasSubstr("\nlisten: []\n"));
  EXPECT_THAT(printed, HasSubstr("  in_flight_bytes: 2147483648  # at least 1024; SIGHUP changes it\n"));
  EXPECT_THAT(printed, HasSubstr("  uids: []  # SIGHUP changes it\n"));
  EXPECT_THAT(printed, HasSubstr("# Bounds of a request."));
}

}  // namespace
}  // namespace tensord::server
