#ifndef TENSORD_CLIENTS_CPP_CONNECTION_CONNECTING_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_CONNECTING_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"

namespace tensord::client {

// Checks a target. INVALID_ARGUMENT for a path that gRPC would take for a host, "/run/tensord.sock" instead of
// "unix:/run/tensord.sock", and for one that is too long for a socket.
absl::Status CheckTarget(const std::string& target);

// Returns true for errors in gRPC's words that time does not change: a certificate that nobody trusts, a socket that
// may not be opened. False for errors that may be over in a moment: nobody listens yet, or a server that starts or
// stops breaks off.
bool IsPermanent(absl::string_view error);

// Waits until a server answers. UNAVAILABLE with the obstacle: when `timeout` is over, and at once if the obstacle is
// permanent.
absl::Status AwaitConnection(const std::shared_ptr<grpc::Channel>& channel, const std::string& target,
                             absl::Duration timeout);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_CONNECTING_H_
