#include "clients/cli/short_text.h"

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
  EXPECT_EQ(ShortBytes(0), "0 B");
  EXPECT_EQ(ShortBytes(1000), "1000 B");
  EXPECT_EQ(ShortBytes(1536), "1.5 KiB");
  EXPECT_EQ(ShortBytes(1 << 20), "1 MiB");
}

}  // namespace
}  // namespace tensord::cli
