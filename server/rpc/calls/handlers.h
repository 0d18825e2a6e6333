#ifndef TENSORD_SERVER_RPC_CALLS_HANDLERS_H_
#define TENSORD_SERVER_RPC_CALLS_HANDLERS_H_

#include "absl/status/status.h"
#include "server/rpc/calls/unary_call.h"

namespace tensord::server {

// The methods of tensord.v1.Compute with one request and one response, each in a file of its own. UnaryCall has the
// rules for handlers.
void HandleCloseSession(UnaryCall* call);
void HandleCompile(UnaryCall* call);
void HandleDeleteTensors(UnaryCall* call);
void HandleDifferentiate(UnaryCall* call);
void HandleExecute(UnaryCall* call);
// Refuses a request before it is read, if a device is full and the request will find no place there.
absl::Status RefuseExecuteUnread(UnaryCall* call);
void HandleExplain(UnaryCall* call);
void HandleGetProgram(UnaryCall* call);
void HandleGetServerInfo(UnaryCall* call);
void HandleOpenSession(UnaryCall* call);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_CALLS_HANDLERS_H_
