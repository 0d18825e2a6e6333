#include "engine/runtime/compile/explain.h"

#include <memory>
#include <utility>

#include "engine/base/refusal.h"
#include "server/rpc/calls/handlers.h"
#include "server/rpc/programs/program_lookup.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

using RequestPtr = std::shared_ptr<const v1::ExplainRequest>;

void ReplyExplained(UnaryCall* call, const CompiledProgram& program) {
  v1::ExplainResponse response;
  response.set_text(ExplainProgram(program));
  for (const ContractionPlan& plan : program.contractions()) {
    v1::ContractionPlan& sent = *response.add_contractions();
    sent.set_node(plan.node);
    for (const auto& [first, second] : PathByPositions(plan)) {
      v1::ContractionPlan::Step& step = *sent.add_path();
      step.add_operands(first);
      step.add_operands(second);
    }
    sent.set_flops(plan.flops);
    sent.set_largest_intermediate(plan.largest);
    sent.set_optimizer(plan.optimizer);
    sent.set_assumes_sizes(plan.assumes_sizes);
  }
  call->Reply(response);
}

// The text is full of names: where the program has another graph's, this one is compiled for it.
void ExplainFound(UnaryCall* call, const RequestPtr& request, absl::StatusOr<ProgramOfGraph> program) {
  if (!program.ok()) return call->Fail(program.status());
  if (program->renaming.empty()) return ReplyExplained(call, *program->found.program);
  CompileApart(call, request->graph(), request->options(), [call](absl::StatusOr<CompiledProgramPtr> own) {
    if (!own.ok()) return call->Fail(own.status());
    ReplyExplained(call, **own);
  });
}

}  // namespace

void HandleExplain(UnaryCall* call) {
  const auto request = std::make_shared<v1::ExplainRequest>();
  const absl::Status parsed = call->Parse(request.get());
  if (!parsed.ok()) return call->Fail(parsed);
  switch (request->program_case()) {
    case v1::ExplainRequest::kFingerprint:
      return FindProgram(call, request->fingerprint(), [call](absl::StatusOr<CompiledProgramPtr> program) {
        if (!program.ok()) return call->Fail(program.status());
        ReplyExplained(call, **program);
      });
    case v1::ExplainRequest::kFingerprintPrefix: {
      const absl::StatusOr<Fingerprint> whole = CompleteFingerprint(call, request->fingerprint_prefix());
      if (!whole.ok()) return call->Fail(whole.status());
      return FindProgram(call, whole->ToHex(), [call](absl::StatusOr<CompiledProgramPtr> program) {
        if (!program.ok()) return call->Fail(program.status());
        ReplyExplained(call, **program);
      });
    }
    case v1::ExplainRequest::kGraph:
      return CompileProgram(
          call, request->graph(), request->options(),
          [call, request](absl::StatusOr<ProgramOfGraph> program) { ExplainFound(call, request, std::move(program)); });
    case v1::ExplainRequest::PROGRAM_NOT_SET:
      break;
  }
  call->Fail(Refuse(Refusal::kMalformedMessage, "the request has no fingerprint, nor its first digits, nor a graph"));
}

}  // namespace tensord::server
