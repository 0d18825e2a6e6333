// ExecuteRequest and ExecuteResponse as bytes, without the copies that the generated classes make of every payload.
#ifndef TENSORD_CLIENTS_CPP_EXECUTE_WIRE_H_
#define TENSORD_CLIENTS_CPP_EXECUTE_WIRE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "clients/cpp/host_tensor.h"
#include "clients/cpp/shared_memory.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

inline constexpr char kExecuteMethod[] = "/tensord.v1.Compute/Execute";

// An ExecuteResponse whose results were all returned, inline or in shared memory.
struct ExecuteReply {
  std::vector<HostTensor> outputs;
  v1::ExecutionStats stats;
};

// The bytes that protobuf makes of `request` with `arguments` in its field of that name, which must be empty in
// `request`. The tensors' bytes are not copied: the buffer holds references to them. Those that have a place in
// `places`, which has an entry an argument or none, are named by it. INVALID_ARGUMENT past the 4 GiB that a gRPC
// message can have.
absl::StatusOr<grpc::ByteBuffer> EncodeExecuteRequest(const v1::ExecuteRequest& request,
                                                      absl::Span<const HostTensor> arguments,
                                                      absl::Span<const std::optional<SharedPlace>> places = {});

// Copies each result once, into memory of its own, but for those that the server put into their space of `spaces`. A
// result that does not name its order has `default_order`. INTERNAL where the bytes are no ExecuteResponse, or a
// result's data does not fit its dtype and shape.
absl::StatusOr<ExecuteReply> DecodeExecuteResponse(const grpc::ByteBuffer& response, MemoryOrder default_order,
                                                   absl::Span<const ResultSpace> spaces = {});

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_EXECUTE_WIRE_H_
