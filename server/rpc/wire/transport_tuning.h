#ifndef TENSORD_SERVER_RPC_WIRE_TRANSPORT_TUNING_H_
#define TENSORD_SERVER_RPC_WIRE_TRANSPORT_TUNING_H_

#include <grpcpp/server_builder.h>

namespace tensord::server {

// Sets a server up for messages of many megabytes, and for clients that vanish. HTTP/2 frames have 1 MiB, and as much
// is looked ahead; gRPC's own values are made for small messages. Quiet connections get pings, so that the calls of a
// client whose machine is gone end within minutes.
void TuneTransport(grpc::ServerBuilder* builder);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_WIRE_TRANSPORT_TUNING_H_
