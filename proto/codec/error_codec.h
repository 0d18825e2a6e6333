#ifndef TENSORD_PROTO_CODEC_ERROR_CODEC_H_
#define TENSORD_PROTO_CODEC_ERROR_CODEC_H_

#include "absl/status/status.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::codec {

// Encodes the information of a failed status beyond its code and message. A status without a refusal has the name of
// its code as reason. Strings are valid UTF-8, so that any client can parse them. `encoded` is empty before.
void EncodeErrorDetail(const absl::Status& status, v1::ErrorDetail* encoded);

// The same in full, for the responses of a stream.
v1::Error EncodeError(const absl::Status& status);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_ERROR_CODEC_H_
