#include "clients/cli/operators/prometheus_text.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(PrometheusText, SamplesHaveNamesLabelsAndValues) {
  const auto samples = ParsePrometheusText(
      "# HELP a_total What a counts.\n"
      "# TYPE a_total counter\n"
      "a_total 12\n"
      "\n"
      "b{le=\"+Inf\",method=\"Execute\"} 1.5e-3 1700000000000\r\n"
      "  c:d { x = \"\" , } -Inf\n"
      "d{} NaN\n"
      "#no space\n"
      "e_last_line_has_no_end 0");
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 5u);
  EXPECT_EQ((*samples)[0].name, "a_total");
  EXPECT_EQ((*samples)[0].value, 12);
  EXPECT_THAT((*samples)[1].labels, ElementsAre(Pair("le", "+Inf"), Pair("method", "Execute")));
  EXPECT_EQ((*samples)[1].value, 1.5e-3);
  EXPECT_EQ((*samples)[2].name, "c:d");
  EXPECT_THAT((*samples)[2].labels, ElementsAre(Pair("x", "")));
  EXPECT_EQ((*samples)[2].value, -INFINITY);
  EXPECT_TRUE(std::isnan((*samples)[3].value));
  EXPECT_EQ((*samples)[4].value, 0);
  EXPECT_TRUE(ParsePrometheusText("")->empty());
}

TEST(PrometheusText, LabelsMayHoldAnything) {
  const auto samples = ParsePrometheusText(R"(a{x="}{,=\"\\\n é"} 1)");
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->front().labels.at("x"), "}{,=\"\\\n é");
}

TEST(PrometheusText, OddLinesAreNamed) {
  for (const char* bad :
       {"a", "a ", "1a 2", "a x", "a 1 x", "a 1 2 3", "a{x=\"1\" 2", "a{x} 1", "a{x=1} 1", "a{x=\"1} 1", "a{x=\"\\",
        "{} 1", "a{x=\"1\"y=\"2\"} 1", "a{,} 1", "a{x=\"1\"}", "a -", "\x01\x02"}) {
    const auto samples = ParsePrometheusText(std::string("good 1\n") + bad);
    ASSERT_FALSE(samples.ok()) << bad;
    EXPECT_THAT(std::string(samples.status().message()), HasSubstr("line 2 "));
  }
}

}  // namespace
}  // namespace tensord::cli
