#ifndef TENSORD_CLIENTS_CPP_CONNECT_OPTIONS_H_
#define TENSORD_CLIENTS_CPP_CONNECT_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/security/credentials.h"

namespace tensord::client {

struct ConnectOptions {
  // As gRPC spells it: "unix:/path", "host:port", "ipv4:10.0.0.1:7070,10.0.0.2:7070" (the first that answers). Empty:
  // DefaultTarget().
  std::string target;
  // How long Connect waits for the server to answer, and after that for its shared memory.
  absl::Duration connect_timeout = absl::Seconds(5);
  // Applies to each call that names no deadline of its own; none: calls wait as long as the server works.
  std::optional<absl::Duration> deadline;
  // None: plain text.
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // Sent with each call, for example an authorization token. Keys are lower-case.
  std::vector<std::pair<std::string, std::string>> metadata;
  // Large tensors go through memory that client and server share, where the server offers some to this
  // process; elsewhere in messages, as ever.
  bool shared_memory = false;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECT_OPTIONS_H_
