#ifndef TENSORD_CONNECT_OPTIONS_H_
#define TENSORD_CONNECT_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace grpc {
class ChannelCredentials;  // grpcpp/security/credentials.h
}  // namespace grpc

namespace tensord::client {

struct ConnectOptions {
  // Address in gRPC's form: "unix:/path", "host:port", "ipv4:10.0.0.1:7070,10.0.0.2:7070" (the first that answers).
  // Empty: DefaultTarget().
  std::string target = {};
  // Bound on Connect's wait for the server, and on its wait for the shared memory.
  absl::Duration connect_timeout = absl::Seconds(5);
  // Deadline of each call without its own. None: calls wait as long as the server works.
  std::optional<absl::Duration> deadline = {};
  // Credentials of the channel. None: plain text.
  std::shared_ptr<grpc::ChannelCredentials> credentials = {};
  // Metadata of each call, for example an authorization token. Keys are lower-case.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  // Sends large tensors through shared memory if the server offers some to this process, otherwise in messages.
  bool shared_memory = false;
};

// Returns $TENSORD_TARGET, or the default address of this user's server: "unix:$XDG_RUNTIME_DIR/tensord.sock", or
// "unix:/tmp/tensord-<uid>/tensord.sock". An empty variable counts as unset.
std::string DefaultTarget();

}  // namespace tensord::client

#endif  // TENSORD_CONNECT_OPTIONS_H_
