#include "clients/load/channel.h"

#include <utility>

#include "absl/status/status.h"
#include "clients/cpp/connection/channel_arguments.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/security/credentials.h"

namespace tensord::load {
namespace {

constexpr absl::Duration kDialTimeout = absl::Seconds(5);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments = client::TunedChannelArguments();
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Each call is measured, so none is sent twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const client::ConnectOptions& options) {
  return grpc::CreateCustomChannel(
      options.target, options.credentials != nullptr ? options.credentials : grpc::InsecureChannelCredentials(),
      Arguments());
}

absl::StatusOr<CuttableChannel> MakeCuttableChannel(const client::ConnectOptions& options) {
  absl::StatusOr<Socket> socket = Dial(options.target, kDialTimeout);
  if (!socket.ok()) return socket.status();
  const int for_channel = socket->Duplicate();  // which the channel closes
  if (for_channel < 0) return absl::UnavailableError("no file descriptor is left");
  return CuttableChannel{.channel = grpc::CreateCustomInsecureChannelFromFd("localhost", for_channel, Arguments()),
                         .socket = *std::move(socket)};
}

}  // namespace tensord::load
