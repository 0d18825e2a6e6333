#include "server/rpc/calls/handlers.h"
#include "server/rpc/programs/program_lookup.h"
#include "server/rpc/programs/program_message.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {

void HandleGetProgram(UnaryCall* call) {
  v1::GetProgramRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  FindProgram(call, request.fingerprint(), [call](absl::StatusOr<CompiledProgramPtr> program) {
    if (!program.ok()) return call->Fail(program.status());
    call->Reply(EncodeProgram(**program));
  });
}

}  // namespace tensord::server
