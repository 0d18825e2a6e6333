#include "clients/cpp/channel_arguments.h"

namespace tensord::client {
namespace {

constexpr int kFrameBytes = 1 << 20;

}  // namespace

grpc::ChannelArguments TunedChannelArguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kFrameBytes);
  return arguments;
}

}  // namespace tensord::client
