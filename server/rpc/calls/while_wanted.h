#ifndef TENSORD_SERVER_RPC_CALLS_WHILE_WANTED_H_
#define TENSORD_SERVER_RPC_CALLS_WHILE_WANTED_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/rpc/calls/served_call.h"

namespace tensord::server {

// Does a step of a call, whose loops and waits leave when the call is cancelled or its deadline passes: that of a
// request that comes now. Fails as the step does, and with DEADLINE_EXCEEDED or CANCELLED where it was to leave, be its
// work done or not. `for_what` ends that message to the client: "the tensor was copied".
absl::Status WhileWanted(const ServedCall& call, absl::string_view for_what, absl::FunctionRef<absl::Status()> step);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_WHILE_WANTED_H_
