#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTE_RESPONSE_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTE_RESPONSE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ops/core_ops.h"
#include "engine/runtime/devices/run.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// The most bytes that protobuf can hold in one message.
inline constexpr int64_t kMaxResponseBytes = (int64_t{1} << 31) - 1;

// Tells whether a result stays on the server, under the option's handle; and true if its data is sent.
bool IsKept(const v1::ResultOption& option);
bool IsSent(const v1::ResultOption& option);

// Encodes the bytes of an ExecuteResponse as protobuf does, without its copies: a payload of some size is a slice over
// the result's own memory, which the buffer keeps alive. Results have slot shapes, reversed for a row-major program;
// the wire gets the client's. The data of a result with `placed` true is in the option's space already, which the
// result names instead. A result beyond `options`, or with the default one, is returned inline; one that is only kept
// or discarded comes without data. LIMIT_EXCEEDED past kMaxResponseBytes.
absl::Status EncodeExecuteResponse(uint64_t request_id, Order order, absl::Span<const RunTensor> results,
                                   const google::protobuf::RepeatedPtrField<v1::ResultOption>& options,
                                   const v1::ExecutionStats& stats, const std::vector<bool>& placed,
                                   grpc::ByteBuffer* response);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTE_RESPONSE_H_
