#ifndef TENSORD_SERVER_RPC_OPERATORS_CHANNELZ_SERVICE_H_
#define TENSORD_SERVER_RPC_OPERATORS_CHANNELZ_SERVICE_H_

#include <grpcpp/impl/service_type.h>

#include <memory>

#include "server/rpc/calls/service_parts.h"

namespace tensord::server {

// Makes grpc.channelz.v1.Channelz: the servers, sockets and channels of this process and their traffic. It is ours and
// not the library's plugin, which would show it on every listener and to anybody. Its methods are in rpc_methods.def as
// all others. `parts` must outlive the service, and the service the server of operators.
std::unique_ptr<grpc::Service> MakeChannelzService(const ServiceParts* parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_OPERATORS_CHANNELZ_SERVICE_H_
