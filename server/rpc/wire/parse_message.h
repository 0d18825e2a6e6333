#ifndef TENSORD_SERVER_RPC_WIRE_PARSE_MESSAGE_H_
#define TENSORD_SERVER_RPC_WIRE_PARSE_MESSAGE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>

#include "absl/status/status.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "google/protobuf/message.h"

namespace tensord::server {

// Parses a message that came in, and frees its bytes. MALFORMED_MESSAGE; UNSUPPORTED_REQUEST for a field that this
// build does not know, of the message itself.
absl::Status ParseMessage(grpc::ByteBuffer* bytes, google::protobuf::Message* message);
// Parses the same from a stream, of a message that came as `num_bytes` bytes.
absl::Status ParseMessage(google::protobuf::io::ZeroCopyInputStream* stream, int64_t num_bytes,
                          google::protobuf::Message* message);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_PARSE_MESSAGE_H_
