#include "clients/cli/shell/short_text.h"

#include "gtest/gtest.h"

namespace tensord::cli {
namespace {

TEST(ShortText, TimesHaveThreeDigits) {
  EXPECT_EQ(ShortTime(absl::ZeroDuration()), "0");
  EXPECT_EQ(ShortTime(absl::Nanoseconds(17)), "17ns");
  EXPECT_EQ(ShortTime(absl::Microseconds(1234)), "1.23ms");
  EXPECT_EQ(ShortTime(absl::Microseconds(999.9)), "1ms");
  EXPECT_EQ(ShortTime(absl::Seconds(4321)), "4321s");
}

TEST(ShortText, BytesHaveThreeDigits) {
  EXPECT_EQ(ShortCount(0), "0");
  EXPECT_EQ(ShortCount(0.0123456), "0.0123");
  EXPECT_EQ(ShortCount(999.4), "999");
  EXPECT_EQ(ShortCount(999.6), "1k");
  EXPECT_EQ(ShortCount(1234567), "1.23M");
  EXPECT_EQ(ShortCount(5e12), "5000G");
  EXPECT_EQ(ShortBytes(0), "0 B");
  EXPECT_EQ(ShortBytes(1000), "1000 B");
  EXPECT_EQ(ShortBytes(1536), "1.5 KiB");
  EXPECT_EQ(ShortBytes(1 << 20), "1 MiB");
}

}  // namespace
}  // namespace tensord::cli
