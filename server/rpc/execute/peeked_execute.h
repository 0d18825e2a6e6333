#ifndef TENSORD_SERVER_RPC_EXECUTE_PEEKED_EXECUTE_H_
#define TENSORD_SERVER_RPC_EXECUTE_PEEKED_EXECUTE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <optional>

#include "engine/base/fingerprint.h"

namespace tensord::server {

// The fields that decide whether an ExecuteRequest finds a place on its device.
struct PeekedExecute {
  Fingerprint fingerprint;
  int32_t priority = 0;
};

// Reads those fields from the request's bytes and passes over the rest, which may be malformed. Nothing if more would
// have to be known: a session, a graph, an outline that encoders do not make.
std::optional<PeekedExecute> PeekExecute(const grpc::ByteBuffer& bytes);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_PEEKED_EXECUTE_H_
