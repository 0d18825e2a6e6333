#ifndef TENSORD_SERVER_RPC_WIRE_MESSAGE_MEASURE_H_
#define TENSORD_SERVER_RPC_WIRE_MESSAGE_MEASURE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/descriptor.h"
#include "proto/codec/limits.h"
#include "server/config/server_limit.h"

namespace tensord::server {

// The bounds of a client's message.
struct MessageBounds {
  codec::GraphLimits graph;
  std::vector<int64_t> lists;  // by row of AllFieldLimits
};
// Returns the current bounds.
MessageBounds BoundsOf(const codec::GraphLimits& graph, const std::vector<ServerLimit>& server);

// Below this a message's objects are not counted: they take less than a call does.
inline constexpr int64_t kMeasuredFrom = 4096;

// The operations on sizes that may be read in a reaction: each combines up to a thousand terms, in some 30 µs, and
// takes ten bytes at least.
inline constexpr int64_t kFewSizeOperations = 64;
inline constexpr int64_t kLeastSizeOperationBytes = 10;

struct MessageMeasure {
  int64_t object_bytes = 0;     // that protobuf's objects will take but for the data of tensors
  int64_t size_operations = 0;  // of all size expressions together
};

// Reads a message on the wire without making objects of it: empty fields of two bytes become objects of a hundred.
// Returns the measure of its objects, or refuses the message: LIMIT_EXCEEDED with the count at which counting ended;
// MALFORMED_MESSAGE if fields that occur once keep coming; UNSUPPORTED_REQUEST if there are many that this build does
// not know. Errors that protobuf will find are left to it.
absl::StatusOr<MessageMeasure> MeasureMessage(const grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type,
                                              const MessageBounds& bounds);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_MESSAGE_MEASURE_H_
