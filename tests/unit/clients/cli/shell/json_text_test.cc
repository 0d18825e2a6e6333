#include "clients/cli/shell/json_text.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tensord/v1/admin.pb.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::cli {
namespace {

using google::protobuf::Struct;

std::string Line(const google::protobuf::Message& message) { return JsonText(message, JsonLayout::kOneLine); }

std::string LineOf(double number) {
  google::protobuf::Value value;
  value.set_number_value(number);
  return Line(value);
}

std::string LineOf(const std::string& text) {
  google::protobuf::Value value;
  value.set_string_value(text);
  return Line(value);
}

TEST(JsonText, IntegersOf64BitsAreNumbers) {
  v1::ServerInfo info;
  info.set_version("1");
  v1::Limit& limit = *info.add_limits();
  limit.set_name("rank");
  limit.set_value(1073741824);
  info.add_limits()->set_value(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Line(info),
            "{\"version\":\"1\",\"limits\":[{\"name\":\"rank\",\"value\":1073741824},"
            "{\"value\":\"9223372036854775807\"}]}\n");
  EXPECT_EQ(
      JsonText(info, JsonLayout::kIndented),
      "{\n \"version\": \"1\",\n \"limits\": [\n  {\n   \"name\": \"rank\",\n   \"value\": 1073741824\n  },\n  {\n"
      "   \"value\": \"9223372036854775807\"\n  }\n ]\n}\n");
}

TEST(JsonText, OtherKindsAreThoseOfProtobuf) {
  v1::ExecutionStats stats;
  stats.mutable_run_time()->set_nanos(1'500'000);
  EXPECT_EQ(Line(stats), "{\"run_time\":\"0.001500s\"}\n");
  v1::CompileResponse compiled;
  compiled.set_source(v1::CompileResponse::SOURCE_MEMORY);
  EXPECT_EQ(Line(compiled), "{\"source\":\"SOURCE_MEMORY\"}\n");
  compiled.set_source(static_cast<v1::CompileResponse::Source>(77));
  EXPECT_EQ(Line(compiled), "{\"source\":77}\n") << "of a newer server";
  v1::CaptureProfileResponse profile;
  profile.set_profile(std::string("\0\xff", 2));
  EXPECT_EQ(Line(profile), "{\"profile\":\"AP8=\"}\n");
  EXPECT_EQ(Line(v1::ListCallsResponse()), "{}\n");
  EXPECT_EQ(Line(Struct()), "{}\n");
  EXPECT_EQ(Line(google::protobuf::ListValue()), "[]\n");
  EXPECT_EQ(Line(google::protobuf::Value()), "null\n");
}

TEST(JsonText, RealsAreTheShortestThatReadBack) {
  EXPECT_EQ(LineOf(0.1), "0.1\n");
  EXPECT_EQ(LineOf(4e6), "4000000\n");
  EXPECT_EQ(LineOf(-3), "-3\n");
  EXPECT_EQ(LineOf(0.0), "0\n");
  for (const double number : {1e300, -1.0 / 3, 5e-324, -0.0, 9007199254740994.0}) {
    google::protobuf::Value read;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(LineOf(number), &read).ok()) << number;
    EXPECT_EQ(read.number_value(), number);
    EXPECT_EQ(std::signbit(read.number_value()), std::signbit(number));
  }
  EXPECT_EQ(LineOf(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"\n");
  EXPECT_EQ(LineOf(-std::numeric_limits<double>::infinity()), "\"-Infinity\"\n");
}

TEST(JsonText, TextsAreJsonWhateverTheyHold) {
  EXPECT_EQ(LineOf("a\"b\\c\nd\t\x7f"), "\"a\\\"b\\\\c\\nd\\u0009\\u007f\"\n");
  EXPECT_EQ(LineOf("\u00e9\u20ac\U0001f600"), "\"\u00e9\u20ac\U0001f600\"\n");
  // Bytes that are no UTF-8: alone, cut off, longer than needed, half of a pair, beyond Unicode.
  for (const char* bad :
       {"\x80", "\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    google::protobuf::Value read;
    const std::string line = LineOf(std::string("x") + bad + "y");
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &read).ok()) << line;
    EXPECT_EQ(line.substr(0, 8), "\"x\\ufffd");
    EXPECT_EQ(line.substr(line.size() - 3), "y\"\n");
  }
}

TEST(JsonText, ObjectsHaveTheirNamesInOrder) {
  Struct object;
  (*object.mutable_fields())["b"].set_bool_value(true);
  (*object.mutable_fields())["a"].mutable_list_value()->add_values()->set_number_value(1);
  EXPECT_EQ(Line(object), "{\"a\":[1],\"b\":true}\n");
}

}  // namespace
}  // namespace tensord::cli
