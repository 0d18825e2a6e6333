#include "clients/cpp/connection/connecting.h"

#include <sys/un.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "clients/cpp/connection/steady_time.h"
#include "clients/cpp/connection/transport_end.h"
#include "clients/cpp/connection/unary_call.h"
#include "clients/cpp/wire/health.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace tensord::client {
namespace {

// A call that waits for no connection fails with the channel's last error.
constexpr absl::Duration kAskWithin = absl::Milliseconds(500);

// gRPC's words for lasting errors, in small letters. Other failed handshakes may come from a server, or a proxy in
// front of one, that starts or stops.
constexpr std::array<absl::string_view, 7> kStays = {
    "permission denied",           // a socket's
    "certificate verify failed",   // of TLS, as the next
    "is not in peer certificate",  // the name
    "wrong version number",        // the peer does not speak TLS
    "http1.x server",              // nor HTTP/2
    "unparseable host:port",       // nor is it an address
    "client channel",              // that failed to be created, of a target that is no address
};

std::string LastError(const std::shared_ptr<grpc::Channel>& channel) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_wait_for_ready(false);
  context->set_deadline(ToGrpcDeadline(SteadyNow() + kAskWithin));
  grpc::GenericStub stub(channel);
  grpc::ByteBuffer response;
  const grpc::Status status = UnaryCall(std::move(context), stub, kHealthMethod, grpc::ByteBuffer(), &response);
  // UNKNOWN: of a target that is no address.
  const bool is_told =
      status.error_code() == grpc::StatusCode::UNAVAILABLE || status.error_code() == grpc::StatusCode::UNKNOWN;
  return is_told ? status.error_message() : "";
}

// False: it has been the same until `end`.
bool AwaitChange(grpc::Channel& channel, grpc_connectivity_state state, gpr_timespec end) {
  auto queue = std::make_unique<grpc::CompletionQueue>();
  channel.NotifyOnStateChange(state, end, queue.get(), nullptr);
  void* tag = nullptr;
  bool ok = false;
  if (queue->AsyncNext(&tag, &ok, LatestEnd(end)) == grpc::CompletionQueue::GOT_EVENT) return ok;
  grpc::CompletionQueue* const kept = queue.get();
  KeepUntilEnded(std::move(queue), kept);
  return false;
}

}  // namespace

absl::Status CheckTarget(const std::string& target) {
  constexpr size_t kMostPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  absl::string_view path = target;
  if (absl::ConsumePrefix(&path, "unix:") && absl::StripPrefix(path, "//").size() > kMostPathBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a unix socket has at most ", kMostPathBytes,
                                                   " bytes, and this one ", absl::StripPrefix(path, "//").size(), ": ",
                                                   target));
  }
  if (!absl::StartsWith(target, "/") && !absl::StartsWith(target, ".")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a target that is a path begins with \"unix:\"; did you mean unix:", target, "?"));
}

bool IsPermanent(absl::string_view error) {
  // Libraries of TLS spell them CERTIFICATE_VERIFY_FAILED or certificate verify failed.
  const std::string words = absl::StrReplaceAll(absl::AsciiStrToLower(error), {{"_", " "}});
  return std::any_of(kStays.begin(), kStays.end(),
                     [&](absl::string_view stays) { return absl::StrContains(words, stays); });
}

absl::Status AwaitConnection(const std::shared_ptr<grpc::Channel>& channel, const std::string& target,
                             absl::Duration timeout) {
  const gpr_timespec end = ToGrpcDeadline(SteadyNow() + timeout);
  std::string why;
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY) {
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      if (std::string error = LastError(channel); !error.empty()) why = std::move(error);
      if (IsPermanent(why)) return absl::UnavailableError(absl::StrCat("no connection: ", target, ": ", why));
    }
    if (!AwaitChange(*channel, state, end)) {
      return absl::UnavailableError(absl::StrCat("no server answers within ", absl::FormatDuration(timeout), ": ",
                                                 target, why.empty() ? "" : ": ", why));
    }
    state = channel->GetState(/*try_to_connect=*/true);
  }
  return absl::OkStatus();
}

}  // namespace tensord::client
