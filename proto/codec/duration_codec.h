#ifndef TENSORD_PROTO_CODEC_DURATION_CODEC_H_
#define TENSORD_PROTO_CODEC_DURATION_CODEC_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"

namespace tensord::codec {

// Encodes a finite duration.
google::protobuf::Duration EncodeDuration(absl::Duration duration);

// Fails with MALFORMED_MESSAGE for durations that google.protobuf.Duration does not allow: more than 10,000 years, or
// seconds and nanoseconds of different signs.
absl::StatusOr<absl::Duration> DecodeDuration(const google::protobuf::Duration& duration);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_DURATION_CODEC_H_
