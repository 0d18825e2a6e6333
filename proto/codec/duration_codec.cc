#include "proto/codec/duration_codec.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"

namespace tensord::codec {

google::protobuf::Duration EncodeDuration(absl::Duration duration) {
  google::protobuf::Duration message;
  if (duration >= absl::ZeroDuration() && duration < absl::Seconds(1)) {  // nearly all are, and it divides nothing
    message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
    return message;
  }
  absl::Duration rest;
  message.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  message.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return message;
}

absl::StatusOr<absl::Duration> DecodeDuration(const google::protobuf::Duration& duration) {
  constexpr int64_t kMostSeconds = 315'576'000'000;
  constexpr int32_t kMostNanos = 999'999'999;
  const int64_t seconds = duration.seconds();
  const int32_t nanos = duration.nanos();
  if (seconds < -kMostSeconds || seconds > kMostSeconds || nanos < -kMostNanos || nanos > kMostNanos ||
      (seconds > 0 && nanos < 0) || (seconds < 0 && nanos > 0)) {
    return Refuse(Refusal::kMalformedMessage, absl::StrCat("no duration: ", seconds, " s and ", nanos, " ns"));
  }
  return absl::Seconds(seconds) + absl::Nanoseconds(nanos);
}

}  // namespace tensord::codec
