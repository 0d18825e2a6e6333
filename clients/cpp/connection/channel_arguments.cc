#include "clients/cpp/connection/channel_arguments.h"

namespace tensord::client {
namespace {

constexpr int kFrameBytes = 1 << 20;
// So many bytes wait to be sent before a write of a stream does: a chunk is made while the one before goes out, and the
// thread that makes them need not be woken for each.
constexpr int kWaitingBytes = 4 << 20;

}  // namespace

grpc::ChannelArguments TunedChannelArguments() {
  grpc::ChannelArguments arguments;
  // No policy asks for retries, and gRPC's state for them loses the end of a write now and then if a stream ends
  // meanwhile. Calls are made again here (retry_backoff.h).
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kFrameBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE, kWaitingBytes);
  return arguments;
}

}  // namespace tensord::client
