#ifndef TENSORD_SERVER_RPC_EXECUTE_EXECUTION_H_
#define TENSORD_SERVER_RPC_EXECUTE_EXECUTION_H_

#include "server/rpc/calls/rpc_request.h"
#include "server/rpc/execute/received_execute.h"

namespace tensord::server {

// Executes an ExecuteRequest and answers it. The handles that it names are claimed before this returns, so requests
// given to it one after the other see the session in that order. `poisons` as in HandleRequest.
void StartExecution(RpcRequest* request, ReceivedExecute received, bool poisons);

// Answers a request of a stream with an earlier refusal, and poisons the results that it was to keep.
void RefuseExecution(RpcRequest* request, ReceivedExecute received, const absl::Status& refusal);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RPC_EXECUTE_EXECUTION_H_
