#ifndef TENSORD_SERVER_RPC_WIRE_STATUS_BRIDGE_H_
#define TENSORD_SERVER_RPC_WIRE_STATUS_BRIDGE_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace tensord::server {

// A status as gRPC sends it: the same code, a message that fits into a trailer, and in grpc-status-details-bin the
// google.rpc.Status with the tensord.v1.ErrorDetail. OK becomes OK.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_STATUS_BRIDGE_H_
