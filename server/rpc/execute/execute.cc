#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/devices/executor_pool.h"
#include "server/rpc/calls/handlers.h"
#include "server/rpc/calls/polling_threads.h"
#include "server/rpc/execute/execution.h"
#include "server/rpc/execute/peeked_execute.h"
#include "server/rpc/execute/received_execute.h"
#include "server/rpc/programs/program_lookup.h"

namespace tensord::server {
namespace {

// A server that refused that lately counts as overloaded.
constexpr absl::Duration kLately = absl::Seconds(1);

// Refuses a request before it is read, if it would be refused in the end. While a device has no room for runs most
// requests end with its refusal, and their time is taken from the runs. OK if the request is to be read; there may
// still be no room for it. `takes_processors`: it is refused because of runs that take processors from calls.
absl::Status RefuseUnread(UnaryCall* call, bool* takes_processors) {
  const ServiceParts& parts = call->parts();
  if (!parts.devices.executors->WasFullSince(call->arrival() - kLately)) return absl::OkStatus();
  const std::optional<PeekedExecute> peeked = PeekExecute(*call->request());
  if (!peeked.has_value()) return absl::OkStatus();
  RunRequest run;
  run.program = FindProgramInMemory(call, peeked->fingerprint);
  if (run.program == nullptr || run.program->may_be_tiny(static_cast<int64_t>(call->request()->Length()))) {
    return absl::OkStatus();
  }
  run.deadline = call->deadline();
  run.tenant = call->caller().tenant;
  run.priority = static_cast<int32_t>(std::min<int64_t>(peeked->priority, parts.devices.max_priority));
  ASSIGN_OR_RETURN(DeviceExecutor * executor, parts.devices.executors->Find(run.program->device()));
  const absl::Status room = executor->CheckRoom(run);
  // Not where it could have no memory, though all processors were idle.
  *takes_processors = executor->computes_here() && executor->last_full() >= call->arrival();
  return room;
}

absl::StatusOr<ReceivedExecute> Receive(UnaryCall* call) {
  RETURN_IF_ERROR(call->Admit(*v1::ExecuteRequest::descriptor()));
  return ReceiveExecute(call->request(), call->parts().admission.graph_limits.now());
}

}  // namespace

absl::Status RefuseExecuteUnread(UnaryCall* call) {
  bool takes_processors = false;
  absl::Status refused = RefuseUnread(call, &takes_processors);
  if (refused.ok()) return refused;
  call->record().stages.End(Stage::kLookup);
  if (takes_processors && call->parts().admission.polling != nullptr) PollingThreads::RestBeforeRefusal();
  return refused;
}

void HandleExecute(UnaryCall* call) {
  absl::StatusOr<ReceivedExecute> received = Receive(call);
  call->record().stages.End(Stage::kParse);
  if (!received.ok()) return call->Fail(received.status());
  StartExecution(call, *std::move(received), /*poisons=*/false);
}

}  // namespace tensord::server
