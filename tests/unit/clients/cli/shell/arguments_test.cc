#include "clients/cli/shell/arguments.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::vector<FlagSpec>& Flags() {
  static const auto* const flags =
      new std::vector<FlagSpec>{{.name = "target", .placeholder = "ADDRESS"},
                                {.name = "input", .placeholder = "NAME=FILE", .is_repeatable = true},
                                {.name = "output", .placeholder = "FILE", .letter = 'o'},
                                {.name = "json"}};
  return *flags;
}

absl::StatusOr<Arguments> Parse(const std::vector<std::string>& words) { return Arguments::Parse(Flags(), words); }

std::string ComplaintAbout(const std::vector<std::string>& words) {
  return std::string(Parse(words).status().message());
}

TEST(Arguments, ReadsFlagsInBothForms) {
  const Arguments arguments = *Parse({"g.json", "--target=unix:/x=y", "--input", "a=1", "--input=b=2", "--json"});
  EXPECT_THAT(arguments.positional(), ElementsAre("g.json"));
  EXPECT_EQ(arguments.Value("target"), "unix:/x=y");
  EXPECT_THAT(arguments.Values("input"), ElementsAre("a=1", "b=2"));
  EXPECT_TRUE(arguments.Has("json"));
}

TEST(Arguments, ALetterStandsForItsFlag) {
  EXPECT_EQ(Parse({"-o", "-"})->Value("output"), "-");
  EXPECT_EQ(Parse({"--output=a", "b"})->Value("output"), "a");
  EXPECT_THAT(Parse({"--", "-o"})->positional(), ElementsAre("-o"));
  EXPECT_THAT(ComplaintAbout({"-o"}), HasSubstr("flag needs a value: --output=FILE"));
  EXPECT_THAT(ComplaintAbout({"-oa"}), HasSubstr("unknown flag: -oa"));
  EXPECT_THAT(ComplaintAbout({"-o", "a", "--output=b"}), HasSubstr("given twice"));
}

TEST(Arguments, AbsentFlagsHaveNoValue) {
  const Arguments arguments = *Parse({});
  EXPECT_FALSE(arguments.Has("json"));
  EXPECT_EQ(arguments.Value("target"), std::nullopt);
  EXPECT_TRUE(arguments.Values("input").empty());
}

TEST(Arguments, DashesEndTheFlagsAndOneDashIsAName) {
  EXPECT_THAT(Parse({"-", "--", "--json"})->positional(), ElementsAre("-", "--json"));
  EXPECT_EQ(Parse({"--target="})->Value("target"), "");
}

TEST(Arguments, AnArrowIsNoFlag) {
  EXPECT_THAT(Parse({"->", "->ij"})->positional(), ElementsAre("->", "->ij"));
  EXPECT_THAT(ComplaintAbout({"-->"}), HasSubstr("unknown flag: -->"));
}

TEST(Arguments, ErrorsNameTheFlag) {
  EXPECT_EQ(ComplaintAbout({"--tagret=x"}), "unknown flag: --tagret; did you mean --target?");
  EXPECT_EQ(ComplaintAbout({"--bogus"}), "unknown flag: --bogus");
  EXPECT_EQ(ComplaintAbout({"-j"}), "unknown flag: -j");
  EXPECT_EQ(ComplaintAbout({"--target"}), "flag needs a value: --target=ADDRESS");
  EXPECT_EQ(ComplaintAbout({"--json=yes"}), "flag takes no value: --json=yes");
  EXPECT_EQ(ComplaintAbout({"--target=a", "--target=b"}), "flag is given twice: --target");
  EXPECT_EQ(ComplaintAbout({"--=x"}), "unknown flag: --");
}

TEST(ParseNameAndFile, NeedsBothSides) {
  EXPECT_THAT(*ParseNameAndFile("input", "x=a=b.npy"), Pair("x", "a=b.npy"));
  for (const char* value : {"", "x", "x=", "=a.npy"}) {
    EXPECT_THAT(std::string(ParseNameAndFile("input", value).status().message()), HasSubstr("--input="));
  }
}

TEST(Arguments, TimesHaveLimits) {
  EXPECT_EQ(*ParseTime("deadline", "1.5s", absl::Nanoseconds(1)), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseTime("timeout", "0s", absl::ZeroDuration()), absl::ZeroDuration());
  for (const char* bad : {"", "soon", "5", "-1s", "0s", "169h", "inf"}) {
    const absl::StatusOr<absl::Duration> time = ParseTime("deadline", bad, absl::Milliseconds(1));
    EXPECT_EQ(time.status().message(),
              absl::StrCat("flag needs a time such as 30s, from 1ms to 168h: --deadline=", bad));
  }
}

}  // namespace
}  // namespace tensord::cli
