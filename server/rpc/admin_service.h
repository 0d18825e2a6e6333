#ifndef TENSORD_SERVER_RPC_ADMIN_SERVICE_H_
#define TENSORD_SERVER_RPC_ADMIN_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/calls/service_parts.h"

namespace tensord::server {

// tensord.v1.Admin for gRPC's callback API, with raw bytes as the Compute service. It is registered with a server of
// its own, on a listener for operators alone. `parts` must outlive the service, and it that server.
std::unique_ptr<grpc::Service> MakeAdminService(const ServiceParts* parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_ADMIN_SERVICE_H_
