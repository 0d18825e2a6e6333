#ifndef TENSORD_PROTO_CODEC_KNOWN_FIELDS_H_
#define TENSORD_PROTO_CODEC_KNOWN_FIELDS_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace tensord::codec {

// Fails with UNSUPPORTED_REQUEST if the message itself, not those inside, has fields that this build does not know.
absl::Status CheckKnownFields(const google::protobuf::Message& message);

}  // namespace tensord::codec

#endif  // TENSORD_PROTO_CODEC_KNOWN_FIELDS_H_
