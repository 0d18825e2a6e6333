#ifndef TENSORD_CLIENTS_CPP_CONNECTION_CHANNEL_ARGUMENTS_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_CHANNEL_ARGUMENTS_H_

#include "grpcpp/support/channel_arguments.h"

namespace tensord::client {

// Returns the best arguments of a channel to a server for messages of many megabytes: no limit on their size, and
// HTTP/2 frames of 1 MiB, which the server offers too; gRPC's own are made for small messages.
grpc::ChannelArguments TunedChannelArguments();

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_CHANNEL_ARGUMENTS_H_
