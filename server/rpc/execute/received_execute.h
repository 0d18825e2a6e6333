#ifndef TENSORD_SERVER_RPC_EXECUTE_RECEIVED_EXECUTE_H_
#define TENSORD_SERVER_RPC_EXECUTE_RECEIVED_EXECUTE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/exec/backend/buffer.h"
#include "engine/exec/backend/parallel_for.h"
#include "engine/exec/memory/host_buffer_pool.h"
#include "proto/codec/limits.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// An ExecuteRequest as it came in: the message, and apart from it the data of large arguments, which the message's
// tensors lack. That data stays in gRPC's slices until it is known to be wanted: a refused request copies nothing. Then
// each has a buffer of its own, aligned as backends want it. Movable; thread-compatible. Its bytes are the request's
// alone, so a run may write over them.
class ReceivedExecute {
 public:
  // The data of an argument, as it lies in the slices.
  struct Payload {
    int argument = 0;
    int64_t size = 0;
    std::vector<absl::string_view> pieces;
  };

  // Copies each payload once, into the pool's memory, a large one by several threads, and frees the slices. Does
  // nothing if that is done. OUT_OF_MEMORY, after which the request is of no use.
  absl::Status Gather(HostBufferPool* pool, const ParallelFor& parallel_for);

  // Returns the bytes that Gather would copy.
  int64_t scattered_bytes() const;

  // Returns the data of an argument that is a tensor; after Gather.
  absl::string_view DataOf(int argument) const;
  // Returns the buffer that it lies in; null if the message has it.
  const Buffer* payload(int argument) const;

  v1::ExecuteRequest message;

 private:
  friend absl::StatusOr<ReceivedExecute> ReceiveExecute(grpc::ByteBuffer* bytes, const codec::GraphLimits& limits);

  std::vector<grpc::Slice> slices_;
  std::vector<Payload> scattered_;
  std::vector<std::shared_ptr<Buffer>> payloads_;  // by argument; or empty
};

// Reads a request from the slices, which it takes. Takes exactly the messages that protobuf takes, and gives them the
// same meaning. MALFORMED_MESSAGE, UNSUPPORTED_REQUEST as ParseMessage; LIMIT_EXCEEDED for a payload beyond
// tensor_bytes.
absl::StatusOr<ReceivedExecute> ReceiveExecute(grpc::ByteBuffer* bytes, const codec::GraphLimits& limits);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_RECEIVED_EXECUTE_H_
