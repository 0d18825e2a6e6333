#ifndef TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_

#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "tensord/connect_options.h"

namespace tensord::client {

// Returns the latest end of a call that begins now: its own deadline, else that of the client's options.
absl::Time DeadlineOf(const ConnectOptions& options, std::optional<absl::Duration> deadline);

// Makes the context of a call. `route` is its key for a balancer, empty for none; a key in the options' metadata holds
// for all calls.
std::unique_ptr<grpc::ClientContext> ContextOf(const ConnectOptions& options, absl::Time deadline,
                                               absl::string_view route);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_
