#ifndef TENSORD_CLIENTS_LOAD_CHANNEL_H_
#define TENSORD_CLIENTS_LOAD_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "clients/load/dial.h"
#include "grpcpp/channel.h"
#include "tensord/client.h"

namespace tensord::load {

// Returns a channel with a connection of its own, which it shares with no other one. It connects when it is first used.
std::shared_ptr<grpc::Channel> MakeChannel(const client::ConnectOptions& options);

// A channel over a socket that is connected already, and that can be cut.
struct CuttableChannel {
  std::shared_ptr<grpc::Channel> channel;
  Socket socket;
};

// Plain text only. UNAVAILABLE if nobody listens, or no descriptor is left.
absl::StatusOr<CuttableChannel> MakeCuttableChannel(const client::ConnectOptions& options);

}  // namespace tensord::load

#endif  // TENSORD_CLIENTS_LOAD_CHANNEL_H_
