#ifndef TENSORD_SERVER_RPC_EXECUTE_REQUEST_CHECK_H_
#define TENSORD_SERVER_RPC_EXECUTE_REQUEST_CHECK_H_

#include "absl/status/status.h"
#include "proto/codec/limits.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

// Checks a request that no program could take. UNSUPPORTED_REQUEST for a delivery that this server does not know,
// LIMIT_EXCEEDED for more arguments or results than a graph may have.
absl::Status CheckRequest(const v1::ExecuteRequest& request, const codec::GraphLimits& limits);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_REQUEST_CHECK_H_
