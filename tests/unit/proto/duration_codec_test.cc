#include "proto/codec/duration_codec.h"

#include <cstdint>
#include <limits>

#include "engine/base/refusal.h"
#include "gtest/gtest.h"

namespace tensord::codec {
namespace {

google::protobuf::Duration Message(int64_t seconds, int32_t nanos) {
  google::protobuf::Duration message;
  message.set_seconds(seconds);
  message.set_nanos(nanos);
  return message;
}

TEST(DurationCodecTest, DurationsComeBack) {
  for (const absl::Duration duration :
       {absl::ZeroDuration(), absl::Nanoseconds(1), absl::Milliseconds(-1500), absl::Hours(24 * 365)}) {
    const absl::StatusOr<absl::Duration> decoded = DecodeDuration(EncodeDuration(duration));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, duration);
  }
}

TEST(DurationCodecTest, WhatIsNoneIsRefused) {
  for (const google::protobuf::Duration& message :
       {Message(std::numeric_limits<int64_t>::max(), 0), Message(-315'576'000'001, 0), Message(0, 1'000'000'000),
        Message(1, -1), Message(-1, 1)}) {
    const absl::Status status = DecodeDuration(message).status();
    ASSERT_FALSE(status.ok()) << message.ShortDebugString();
    EXPECT_EQ(DetailOf(status)->reason, "MALFORMED_MESSAGE");
  }
}

}  // namespace
}  // namespace tensord::codec
