#include "engine/runtime/explain.h"
#include "engine/base/refusal.h"
#include "server/rpc/handlers.h"
#include "server/rpc/program_lookup.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

void ReplyExplained(UnaryCall* call, const CompiledProgram& program) {
  v1::ExplainResponse response;
  response.set_text(ExplainProgram(program));
  call->Reply(response);
}

}  // namespace

void HandleExplain(UnaryCall* call) {
  v1::ExplainRequest request;
  const absl::Status parsed = call->Parse(&request);
  if (!parsed.ok()) return call->Fail(parsed);
  switch (request.program_case()) {
    case v1::ExplainRequest::kFingerprint: {
      const absl::StatusOr<CompiledProgramPtr> program = FindProgram(call, request.fingerprint());
      if (!program.ok()) return call->Fail(program.status());
      return ReplyExplained(call, **program);
    }
    case v1::ExplainRequest::kGraph:
      return CompileProgram(call, request.graph(), request.options(),
                            [call](absl::StatusOr<ProgramCache::Found> found) {
                              if (!found.ok()) return call->Fail(found.status());
                              ReplyExplained(call, *found->program);
                            });
    case v1::ExplainRequest::PROGRAM_NOT_SET:
      break;
  }
  call->Fail(Refuse(Refusal::kMalformedMessage, "the request has neither a fingerprint nor a graph"));
}

}  // namespace tensord::server
