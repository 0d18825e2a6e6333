#include "proto/command_line/size.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace tensord::wire {
namespace {

TEST(ParseSize, UnitsHaveTwoBases) {
  EXPECT_EQ(ParseSize("0"), 0);
  EXPECT_EQ(ParseSize("2147483648"), 2147483648);
  EXPECT_EQ(ParseSize("2k"), 2'000);
  EXPECT_EQ(ParseSize("2K"), 2'000);
  EXPECT_EQ(ParseSize("3M"), 3'000'000);
  EXPECT_EQ(ParseSize("2G"), 2'000'000'000);
  EXPECT_EQ(ParseSize("1T"), 1'000'000'000'000);
  EXPECT_EQ(ParseSize("2Ki"), 2048);
  EXPECT_EQ(ParseSize("2Mi"), int64_t{2} << 20);
  EXPECT_EQ(ParseSize("2Gi"), int64_t{2} << 30);
  EXPECT_EQ(ParseSize("2Ti"), int64_t{2} << 40);
  EXPECT_EQ(ParseSize("2GiB"), ParseSize("2Gi"));
  EXPECT_EQ(ParseSize("64B"), 64);
}

TEST(ParseSize, RefusesWhatIsNoSizeOrDoesNotFit) {
  for (const char* bad : {"", "G", "Gi", "B", "-1", "+1", "1.5G", "2g", "2KK", "2Gib", "2 G", " 2", "0x10", "2GG",
                          "9223372036854775808", "9223372036854775807k", "8388608Ti"}) {
    EXPECT_EQ(ParseSize(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(ParseSize("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseSize("8388607Ti"), int64_t{8388607} << 40);
}

}  // namespace
}  // namespace tensord::wire
