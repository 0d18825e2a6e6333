#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "proto/codec/duration_codec.h"
#include "server/rpc/execute_arguments.h"
#include "server/rpc/execute_response.h"
#include "server/rpc/handlers.h"
#include "server/rpc/program_lookup.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::server {
namespace {

using Clock = std::chrono::steady_clock;
using RequestPtr = std::shared_ptr<const ReceivedExecute>;

absl::Duration Since(Clock::time_point start) { return absl::FromChrono(Clock::now() - start); }

absl::Status CheckSupported(const v1::ExecuteRequest& request) {
  if (!request.session().empty()) {
    return Refuse(Refusal::kUnsupportedRequest, "this server has no sessions; leave the session empty");
  }
  for (const v1::ResultOption& option : request.results()) {
    if (option.delivery() != v1::ResultOption::DELIVERY_INLINE &&
        option.delivery() != v1::ResultOption::DELIVERY_DISCARD) {
      return Refuse(Refusal::kUnsupportedRequest,
                    absl::StrCat("this server returns results inline or discards them; delivery ",
                                 static_cast<int>(option.delivery())));
    }
  }
  return absl::OkStatus();
}

v1::SegmentProfile EncodeSegment(absl::string_view backend, const SegmentProfile& segment, const Renaming& renaming) {
  v1::SegmentProfile message;
  message.set_backend(std::string(backend));
  message.set_kernel(segment.kernel);
  for (const std::string& node : segment.nodes) message.add_nodes(renaming.Of(node));
  *message.mutable_start() = codec::EncodeDuration(segment.start);
  *message.mutable_duration() = codec::EncodeDuration(segment.duration);
  return message;
}

v1::ExecutionStats EncodeStats(const RequestRecord& record, const CompiledProgram& program, const RunOutcome& outcome,
                               const Renaming& renaming) {
  v1::ExecutionStats stats;
  stats.set_device(program.device());
  *stats.mutable_queue_time() = codec::EncodeDuration(outcome.queue_time);
  if (record.compile.has_value()) *stats.mutable_compile_time() = codec::EncodeDuration(*record.compile);
  *stats.mutable_run_time() = codec::EncodeDuration(outcome.run_time);
  stats.set_peak_bytes(outcome.peak_bytes);
  for (const SegmentProfile& segment : outcome.profile) {
    *stats.add_segments() = EncodeSegment(program.backend()->kind(), segment, renaming);
  }
  return stats;
}

void Respond(UnaryCall* call, const v1::ExecuteRequest& request, const CompiledProgram& program,
             const Renaming& renaming, absl::StatusOr<RunOutcome> outcome) {
  if (!outcome.ok()) return call->Fail(renaming.Of(outcome.status()));
  const Clock::time_point start = Clock::now();
  call->record().queue = outcome->queue_time;
  call->record().run = outcome->run_time;
  absl::StatusOr<grpc::ByteBuffer> response = EncodeExecuteResponse(
      request.request_id(), program.program().row_major ? Order::kRowMajor : Order::kColumnMajor, outcome->results,
      request.results(), EncodeStats(call->record(), program, *outcome, renaming));
  if (!response.ok()) return call->Fail(response.status());
  call->record().encode = Since(start);
  call->Reply(*std::move(response));
}

absl::StatusOr<RunRequest> MakeRun(UnaryCall* call, const RequestPtr& request, const CompiledProgramPtr& program) {
  RETURN_IF_ERROR(call->CheckWanted());
  if (static_cast<size_t>(request->message.results_size()) > program->program().outputs.size()) {
    return Refuse(Refusal::kArgumentCount,
                  absl::StrCat("the program has ", program->program().outputs.size(),
                               " outputs, but there are options for ", request->message.results_size()));
  }
  RunRequest run;
  run.program = program;
  run.deadline = call->deadline();
  run.cancel = call->cancel();
  run.profile = request->message.profile();
  run.tenant = call->caller().tenant;
  run.priority = std::min(request->message.priority(), call->parts().max_priority);
  if (!program->is_tiny()) {  // what is refused is not worth decoding
    ASSIGN_OR_RETURN(DeviceExecutor * executor, call->parts().executors->Find(program->device()));
    RETURN_IF_ERROR(executor->CheckRoom(run));
  }
  ASSIGN_OR_RETURN(run.arguments, DecodeArguments(request, program->program(), call->parts().graph_limits));
  return run;
}

// Hands the run to the program's device; the call is then the executor's.
absl::Status Submit(UnaryCall* call, const RequestPtr& request, const Renaming& renaming, RunRequest run) {
  ASSIGN_OR_RETURN(DeviceExecutor * executor, call->parts().executors->Find(run.program->device()));
  run.done = [call, request, renaming, program = run.program](absl::StatusOr<RunOutcome> outcome) {
    call->Continue([&] { Respond(call, request->message, *program, renaming, std::move(outcome)); });
  };
  return executor->Submit(std::move(run));
}

void Run(UnaryCall* call, const RequestPtr& request, const CompiledProgramPtr& program, const Renaming& renaming,
         Clock::time_point start) {
  absl::StatusOr<RunRequest> run = MakeRun(call, request, program);
  if (!run.ok()) return call->Fail(renaming.Of(run.status()));
  call->record().decode = Since(start);
  if (program->is_tiny())
    return Respond(call, request->message, *program, renaming, RunProgram(*run, absl::ZeroDuration()));
  const absl::Status submitted = Submit(call, request, renaming, *std::move(run));
  if (!submitted.ok()) call->Fail(renaming.Of(submitted));
}

}  // namespace

void HandleExecute(UnaryCall* call) {
  const Clock::time_point start = Clock::now();
  absl::StatusOr<ReceivedExecute> received =
      ReceiveExecute(call->request(), call->parts().payloads, call->parts().graph_limits);
  if (!received.ok()) return call->Fail(received.status());
  const RequestPtr request = std::make_shared<ReceivedExecute>(*std::move(received));
  const v1::ExecuteRequest& message = request->message;
  const absl::Status supported = CheckSupported(message);
  if (!supported.ok()) return call->Fail(supported);

  switch (message.program_case()) {
    case v1::ExecuteRequest::kFingerprint: {
      const absl::StatusOr<CompiledProgramPtr> program = FindProgram(call, message.fingerprint());
      if (!program.ok()) return call->Fail(program.status());
      return Run(call, request, *program, Renaming(), start);
    }
    case v1::ExecuteRequest::kGraph:
      return CompileProgram(call, message.graph(), message.options(),
                            [call, request](absl::StatusOr<ProgramOfGraph> program) {
                              if (!program.ok()) return call->Fail(program.status());
                              Run(call, request, program->found.program, program->renaming, Clock::now());
                            });
    case v1::ExecuteRequest::PROGRAM_NOT_SET:
      break;
  }
  call->Fail(Refuse(Refusal::kMalformedMessage, "the request has neither a fingerprint nor a graph"));
}

}  // namespace tensord::server
