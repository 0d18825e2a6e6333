#include "server/observe/records/trace_context.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace tensord::server {
namespace {

constexpr char kSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(TraceparentTest, HasIdsAndTheFlag) {
  const std::optional<TraceContext> context = ParseTraceparent(kSampled);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(ToHex(context->trace_id), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context->span_id, (SpanId{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}));
  EXPECT_TRUE(context->sampled);
  EXPECT_FALSE(ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")->sampled);
  EXPECT_FALSE(ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-fe")->sampled);
  EXPECT_TRUE(ParseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03")->sampled);
}

TEST(TraceparentTest, LaterVersionsMayHaveMore) {
  EXPECT_TRUE(ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").has_value());
  EXPECT_TRUE(ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes").has_value());
  EXPECT_FALSE(ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what").has_value());
}

TEST(TraceparentTest, AnythingElseIsNone) {
  for (const char* wrong : {
           "",
           "00",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
           "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
           "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
           " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
       }) {
    EXPECT_FALSE(ParseTraceparent(wrong).has_value()) << wrong;
  }
}

TEST(TracestateTest, IsPassedOnWithoutWhatIsEmpty) {
  EXPECT_EQ(ParseTracestate(""), "");
  EXPECT_EQ(ParseTracestate("congo=t61rcWkgMzE"), "congo=t61rcWkgMzE");
  EXPECT_EQ(ParseTracestate(" rojo=00f067aa0ba902b7 ,\t,fw529a3039@dt=a b,"),
            "rojo=00f067aa0ba902b7,fw529a3039@dt=a b");
}

TEST(TracestateTest, RefusesWhatIsNone) {
  for (const char* wrong : {"a", "=b", "a=", "A=b", "a =b", "a=b=c", "-a=b", "a=1,a=2", "a=\x7f", "a=\xc3\xa9"}) {
    EXPECT_FALSE(ParseTracestate(wrong).has_value()) << wrong;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += "k" + std::to_string(i) + "=v,";
  EXPECT_FALSE(ParseTracestate(many).has_value());
  EXPECT_FALSE(ParseTracestate("a=" + std::string(257, 'v')).has_value());
  EXPECT_FALSE(ParseTracestate(std::string(257, 'k') + "=v").has_value());
}

TEST(TracestateTest, LongMembersGoFirstThenTheLast) {
  const std::string large = "large=" + std::string(200, 'x');
  std::string middle;
  for (int i = 0; i < 4; ++i) middle += ",m" + std::to_string(i) + "=" + std::string(100, 'y');
  EXPECT_EQ(ParseTracestate("first=1," + large + middle), "first=1" + middle);

  std::string small = "s0=" + std::string(97, 'z');
  for (int i = 1; i < 6; ++i) small += ",s" + std::to_string(i) + "=" + std::string(97, 'z');
  const std::optional<std::string> shortened = ParseTracestate(small);
  ASSERT_TRUE(shortened.has_value());
  EXPECT_EQ(*shortened, small.substr(0, 5 * 101 - 1)) << "five of them fit";
}

TEST(TraceIdTest, NewOnesDiffer) {
  std::set<TraceId> traces;
  std::set<SpanId> spans;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(traces.insert(NewTraceId()).second);
    EXPECT_TRUE(spans.insert(NewSpanId()).second);
  }
  EXPECT_EQ(ToHex(TraceId{}), "");
}

}  // namespace
}  // namespace tensord::server
