#include <utility>

#include "server/rpc/execution.h"
#include "server/rpc/handlers.h"
#include "server/rpc/received_execute.h"

namespace tensord::server {

void HandleExecute(UnaryCall* call) {
  absl::StatusOr<ReceivedExecute> received = ReceiveExecute(call->request(), call->parts().graph_limits.now());
  call->record().stages.End(Stage::kParse);
  if (!received.ok()) return call->Fail(received.status());
  StartExecution(call, *std::move(received), /*poisons=*/false);
}

}  // namespace tensord::server
