#include "clients/cpp/connecting.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cpp/health.h"
#include "clients/cpp/steady_time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace tensord::client {
namespace {

// A call that waits for no connection fails with the channel's last error.
constexpr absl::Duration kAskWithin = absl::Milliseconds(500);

// What gRPC's words for errors that stay have in common.
constexpr std::array<absl::string_view, 6> kStays = {"Permission denied", "handshake", "certificate",
                                                     "SSL_ERROR",         "Peer name", "not a valid"};

std::string LastError(grpc::Channel& channel) {
  grpc::ClientContext context;
  context.set_wait_for_ready(false);
  context.set_deadline(ToGrpcDeadline(SteadyNow() + kAskWithin));
  // The channel's owner outlives the call.
  grpc::GenericStub stub(std::shared_ptr<grpc::Channel>(std::shared_ptr<grpc::Channel>(), &channel));
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareUnaryCall(&context, kHealthMethod, grpc::ByteBuffer(), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ? status.error_message() : "";
}

}  // namespace

absl::Status CheckTarget(const std::string& target) {
  if (!absl::StartsWith(target, "/") && !absl::StartsWith(target, ".")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a target that is a path begins with \"unix:\"; did you mean unix:", target, "?"));
}

absl::Status AwaitConnection(grpc::Channel& channel, const std::string& target, absl::Duration timeout) {
  const absl::Time end = SteadyNow() + timeout;
  std::string why;
  grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
  bool is_final = false;
  while (state != GRPC_CHANNEL_READY && !is_final) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      if (std::string error = LastError(channel); !error.empty()) why = std::move(error);
      is_final = std::any_of(kStays.begin(), kStays.end(),
                             [&](absl::string_view words) { return absl::StrContains(why, words); });
      if (is_final) break;
    }
    if (!channel.WaitForStateChange(state, ToGrpcDeadline(end))) break;
    state = channel.GetState(/*try_to_connect=*/true);
  }
  if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
  if (why.empty()) why = LastError(channel);
  return absl::UnavailableError(absl::StrCat(
      is_final ? "no connection" : absl::StrCat("no server answers within ", absl::FormatDuration(timeout)), ": ",
      target, why.empty() ? "" : absl::StrCat(": ", why)));
}

}  // namespace tensord::client
