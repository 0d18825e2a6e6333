#ifndef TENSORD_SERVER_RPC_RECEIVED_EXECUTE_H_
#define TENSORD_SERVER_RPC_RECEIVED_EXECUTE_H_

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/exec/buffer.h"
#include "engine/exec/host_buffer_pool.h"
#include "engine/exec/parallel_for.h"
#include "proto/codec/limits.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// An ExecuteRequest as it came in: the message, and beside it the data of large arguments, each in a buffer of its own
// that is aligned as backends want it. The message's tensors lack what lies in a buffer. A value; its bytes are the
// request's alone, so a run may write over them.
struct ReceivedExecute {
  v1::ExecuteRequest message;
  std::vector<std::shared_ptr<Buffer>> payloads;  // by argument, null where the message has the data; or empty

  // The data of an argument that is a tensor.
  absl::string_view DataOf(int argument) const;
};

// Reads a request from the slices in which gRPC received it, which are then freed: a payload is copied once, into the
// pool's memory, a large one by several threads, and protobuf reads the rest. Takes exactly the messages that protobuf
// takes, and gives them the same meaning. MALFORMED_MESSAGE, UNSUPPORTED_REQUEST as ParseMessage; LIMIT_EXCEEDED for a
// payload beyond tensor_bytes, before memory is taken for any; OUT_OF_MEMORY.
absl::StatusOr<ReceivedExecute> ReceiveExecute(grpc::ByteBuffer* bytes, const codec::GraphLimits& limits,
                                               HostBufferPool* pool, const ParallelFor& parallel_for);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_RECEIVED_EXECUTE_H_
