// ExecuteRequest and ExecuteResponse as bytes, without the copies that the generated classes make of every payload.
#ifndef TENSORD_CLIENTS_CPP_WIRE_EXECUTE_WIRE_H_
#define TENSORD_CLIENTS_CPP_WIRE_EXECUTE_WIRE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensord/argument.h"
#include "tensord/execute_answer.h"
#include "tensord/host_tensor.h"
#include "tensord/result_plan.h"
#include "tensord/shared_memory.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::client {

inline constexpr char kExecuteMethod[] = "/tensord.v1.Compute/Execute";
inline constexpr char kExecuteStreamMethod[] = "/tensord.v1.Compute/ExecuteStream";

// Encodes `request` as protobuf does, with `arguments` in its field of that name, which must be empty in `request`. The
// tensors' bytes are not copied: the buffer holds references to them. Tensors with a place in `places`, which has an
// entry an argument or none, are named by it. INVALID_ARGUMENT past the 4 GiB that a gRPC message can have.
absl::StatusOr<grpc::ByteBuffer> EncodeExecuteRequest(const v1::ExecuteRequest& request,
                                                      absl::Span<const Argument> arguments,
                                                      absl::Span<const std::optional<SharedPlace>> places = {});

// Decodes a response. Copies each returned result once, into memory of its own, but for those that the server put into
// their space of `spaces`. Results without a plan count as returned. A result that does not name its order has
// `default_order`. INTERNAL if the bytes are no ExecuteResponse, or a result's data does not fit its dtype and shape.
absl::StatusOr<ExecuteAnswer> DecodeExecuteResponse(const grpc::ByteBuffer& response, MemoryOrder default_order,
                                                    absl::Span<const ResultPlan> plans = {},
                                                    absl::Span<const ResultSpace> spaces = {});

// The owner of a stream's response, and the error that it brings instead of results, if any.
struct ResponseHead {
  uint64_t request_id = 0;
  absl::Status error;
};

// Passes over the results. INTERNAL if the bytes are no ExecuteResponse as far as it reads them.
absl::StatusOr<ResponseHead> ReadResponseHead(const grpc::ByteBuffer& response);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_WIRE_EXECUTE_WIRE_H_
