#ifndef TENSORD_SERVER_RPC_OPERATORS_ADMIN_HANDLERS_H_
#define TENSORD_SERVER_RPC_OPERATORS_ADMIN_HANDLERS_H_

#include "server/rpc/calls/unary_call.h"

namespace tensord::server {

// The methods of tensord.v1.Admin. UnaryCall has the rules for handlers.
void HandleListPrograms(UnaryCall* call);
void HandleEvictPrograms(UnaryCall* call);
void HandleReleasePrograms(UnaryCall* call);
void HandleListSessions(UnaryCall* call);
void HandleAdminCloseSession(UnaryCall* call);
void HandleListCalls(UnaryCall* call);
void HandleCancelCall(UnaryCall* call);
void HandleDumpFlightRecorder(UnaryCall* call);
void HandleSetLogLevel(UnaryCall* call);
// Answers, and then stops the server as SIGTERM does.
void HandleDrain(UnaryCall* call);
// Answers when the profile is taken.
void HandleCaptureProfile(UnaryCall* call);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_OPERATORS_ADMIN_HANDLERS_H_
