#ifndef TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_
#define TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_

#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "tensord/connect_options.h"

namespace tensord::client {

// When a call that begins now ends at the latest: as it says itself, else as the client's options do.
absl::Time DeadlineOf(const ConnectOptions& options, std::optional<absl::Duration> deadline);

// What goes with a call. `route` is its key for a balancer, empty for none; where the options' metadata has one, all
// calls have that.
std::unique_ptr<grpc::ClientContext> ContextOf(const ConnectOptions& options, absl::Time deadline,
                                               absl::string_view route);

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_CONNECTION_CALL_CONTEXT_H_
