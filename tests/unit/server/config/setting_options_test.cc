#include "server/config/setting_options.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config_file.h"
#include "server/config/flat_settings.h"

namespace tensord::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using ::testing::Contains;
using ::testing::Not;

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 || field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

// What is said of the setting with that value; empty where it is right.
std::string CheckedWith(const std::string& path, const std::string& value) {
  ServerConfig config;
  EXPECT_TRUE(SetConfigField(absl::StrCat(path, "=", value), &config).ok()) << path << " " << value;
  return std::string(CheckOptions(config).message());
}

TEST(SettingOptionsTest, EveryNumberHasARangeThatItsDefaultIsIn) {
  VisitSettings(ServerConfig(), [](const std::string& path, const Message&, const FieldDescriptor& field) {
    if (field.is_repeated() || !IsNumber(field)) return;
    EXPECT_TRUE(field.options().HasExtension(least)) << path;
    EXPECT_NE(PrintRange(field), "") << path;
  });
  EXPECT_EQ(CheckOptions(WithDefaults(ServerConfig())), absl::OkStatus());
}

TEST(SettingOptionsTest, TheEndsOfEveryRangeAreRightAndWhatIsBeyondIsNot) {
  VisitSettings(ServerConfig(), [](const std::string& path, const Message&, const FieldDescriptor& field) {
    if (!field.options().HasExtension(least)) return;
    const int64_t from = field.options().GetExtension(least), to = field.options().GetExtension(most);
    EXPECT_EQ(CheckedWith(path, absl::StrCat(from)), "");
    EXPECT_NE(CheckedWith(path, absl::StrCat(from - 1)), "");
    if (!field.options().HasExtension(most)) return;
    EXPECT_EQ(CheckedWith(path, absl::StrCat(to)), "");
    const bool is_wide = field.cpp_type() != FieldDescriptor::CPPTYPE_INT32 || to < std::numeric_limits<int32_t>::max();
    if (is_wide) {
      EXPECT_NE(CheckedWith(path, absl::StrCat(to + 1)), "");
    }
  });
}

TEST(SettingOptionsTest, RefusalsSayWhatMayBeSet) {
  const std::pair<std::vector<std::string>, std::string> refusals[] = {
      {{"limits.message_bytes", "1023"}, "setting limits.message_bytes must be between 1024 and 2147483647, not 1023"},
      {{"limits.rank", "0"}, "setting limits.rank must be between 1 and 9223372036854775807, not 0"},
      {{"limits.unread_ms", "86400001"}, "setting limits.unread_ms must be between 0 and 86400000, not 86400001"},
      {{"cpu.executors", "1025"}, "setting cpu.executors must be between 1 and 1024, not 1025"},
      {{"cpu.memory_bytes", "-2"}, "setting cpu.memory_bytes must be between -1 and 9223372036854775807, not -2"},
      {{"scheduling.max_priority", "3"}, "setting scheduling.max_priority must be between -2 and 2, not 3"},
      {{"drain.grace_ms", "31536000001"}, "setting drain.grace_ms must be between 0 and 31536000000, not 31536000001"},
      {{"tracing.sample_ratio", "1.5"}, "setting tracing.sample_ratio is between 0 and 1, not 1.5"},
      {{"tracing.sample_ratio", "nan"}, "setting tracing.sample_ratio is between 0 and 1, not nan"},
      {{"cpu.jit", "maybe"}, "setting cpu.jit is one of auto, on, off, not \"maybe\""},
      {{"warm_up.order", ""}, "setting warm_up.order is row or column, not \"\""},
      {{"identity.required", "yes"}, "setting identity.required is one of auto, on, off, not \"yes\""},
      {{"log.level", "loud"}, "setting log.level is one of debug, info, warning, error, off, not \"loud\""},
  };
  for (const auto& [setting, message] : refusals) EXPECT_EQ(CheckedWith(setting[0], setting[1]), message);
}

TEST(SettingOptionsTest, LimitsHaveTheNamesThatRefusalsGiveThem) {
  ServerConfig config;
  config.mutable_limits()->set_message_bytes(4096);
  const std::vector<ServerLimit> limits = LimitSettings(config);
  std::set<std::string> names;
  for (const ServerLimit& one : limits) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  EXPECT_THAT(names, Contains("message_bytes"));
  EXPECT_THAT(names, Contains("cpu.queue_length"));
  EXPECT_THAT(names, Not(Contains("limits.message_bytes")));
  EXPECT_THAT(names, Not(Contains("cpu.executors"))) << "no client meets it";
  const auto value_of = [&](const std::string& name) {
    const auto found =
        std::find_if(limits.begin(), limits.end(), [&](const ServerLimit& one) { return one.name == name; });
    return found == limits.end() ? -1 : int64_t{found->value};
  };
  EXPECT_EQ(value_of("message_bytes"), 4096);
  EXPECT_EQ(value_of("sessions.count"), 1000) << "the default";
}

}  // namespace
}  // namespace tensord::server
