#ifndef TENSORD_SERVER_RPC_COMPUTE_SERVICE_H_
#define TENSORD_SERVER_RPC_COMPUTE_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/calls/service_parts.h"

namespace tensord::server {

// Makes tensord.v1.Compute for gRPC's callback API. Every method takes and gives raw bytes: the generated typed methods
// answer bytes that they cannot parse with an UNIMPLEMENTED without a reason, and copy payloads. `parts` must outlive
// the service, and the service the server that it is registered with.
std::unique_ptr<grpc::Service> MakeComputeService(const ServiceParts* parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_COMPUTE_SERVICE_H_
