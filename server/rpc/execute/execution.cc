#include "server/rpc/execute/execution.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/arena.h"
#include "server/rpc/calls/reading_turn.h"
#include "server/rpc/calls/request_wait.h"
#include "server/rpc/execute/execute_arguments.h"
#include "server/rpc/execute/execute_response.h"
#include "server/rpc/execute/execution_state.h"
#include "server/rpc/execute/execution_stats.h"
#include "server/rpc/execute/kept_results.h"
#include "server/rpc/execute/known_result_bytes.h"
#include "server/rpc/execute/named_handles.h"
#include "server/rpc/execute/request_check.h"
#include "server/rpc/execute/shared_results.h"
#include "server/rpc/programs/program_lookup.h"
#include "server/rpc/tensors/named_tenancy.h"
#include "server/sessions/session_store.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxSpanSegments = 1024;
constexpr int64_t kPromisedHandleBytes = 512;
constexpr size_t kStatsBytes = 1024;  // that stats without segments fit into

// One request on its way from its arrival to its answer, which may take it over several threads, one after the other.
// Lives as long as somebody is to go on with it.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  Execution(RpcRequest* request, ReceivedExecute received)
      : request_(request),
        received_(std::make_shared<ReceivedExecute>(std::move(received))),
        kept_(KeptOf(received_->message)) {}

  // A run that began may have written over its arguments, however it ended.
  ~Execution() {
    if (started_->has_begun()) claim_.Start();
  }

  void Begin(bool poisons, const absl::Status& refusal) {
    const absl::Status claimed = Claim(poisons, refusal);
    if (!claimed.ok()) return Fail(claimed);
    Enter(ExecutionState::kFinding);
    const v1::ExecuteRequest& message = received_->message;
    switch (message.program_case()) {
      case v1::ExecuteRequest::kFingerprint:
        return FindProgram(request_, message.fingerprint(),
                           [self = shared_from_this()](absl::StatusOr<CompiledProgramPtr> program) {
                             if (!program.ok()) return self->Fail(program.status());
                             self->AwaitOnItsDevice(*std::move(program));
                           });
      case v1::ExecuteRequest::kGraph:
        return CompileProgram(request_, message.graph(), message.options(),
                              [self = shared_from_this()](absl::StatusOr<ProgramOfGraph> program) {
                                if (!program.ok()) return self->Fail(program.status());
                                self->executor_ = program->executor;
                                self->Await(std::move(program->found.program), std::move(program->renaming));
                              });
      case v1::ExecuteRequest::PROGRAM_NOT_SET:
        break;
    }
    Fail(Refuse(Refusal::kMalformedMessage, "the request has neither a fingerprint nor a graph"));
  }

 private:
  // `refusal`: of the request as a whole, where it is not OK.
  absl::Status Claim(bool poisons, absl::Status refusal) {
    const v1::ExecuteRequest& message = received_->message;
    refusal.Update(CheckRequest(message, request_->parts().admission.graph_limits.now()));
    const HandleRequest handles = HandlesOf(message, poisons);
    const bool names_handles = !handles.uses.empty() || !handles.keeps.empty();
    if (refusal.ok()) refusal = HoldPromises(handles.keeps.size());
    if (message.session().empty()) {
      if (!names_handles || !refusal.ok()) return refusal;
      return Refuse(Refusal::kSessionUnknown, "handles belong to a session, and the request names none");
    }
    absl::StatusOr<SessionUse> use = UseSession(request_->call(), request_->record(), message.session());
    if (!use.ok()) return refusal.ok() ? use.status() : refusal;
    use_ = *std::move(use);
    if (!refusal.ok()) {
      if (poisons) use_.session()->Poison(handles, refusal);
      return refusal;
    }
    if (!names_handles) return absl::OkStatus();
    ASSIGN_OR_RETURN(claim_, use_.session()->Claim(handles));
    return absl::OkStatus();
  }

  // A session's record of a tensor to come is several times as large as its name in a request.
  absl::Status HoldPromises(size_t promises) {
    if (promises == 0) return absl::OkStatus();
    const std::shared_ptr<const AddedBytes> own = request_->HoldBytes();
    ASSIGN_OR_RETURN(AddedBytes bytes, AddedBytes::Add(&request_->parts().admission.gate->bytes(),
                                                       static_cast<int64_t>(promises) * kPromisedHandleBytes,
                                                       request_->caller().tenant, own == nullptr ? 0 : own->bytes()));
    promised_bytes_.emplace(std::move(bytes));
    return absl::OkStatus();
  }

  void AwaitOnItsDevice(CompiledProgramPtr program) {
    absl::StatusOr<DeviceExecutor*> executor = request_->parts().devices.executors->Find(program->device());
    if (!executor.ok()) return Fail(executor.status());
    executor_ = *executor;
    Await(std::move(program), Renaming());
  }

  // Goes on when the tensors that earlier requests make are there; holds no thread meanwhile.
  void Await(CompiledProgramPtr program, Renaming renaming) {
    program_ = std::move(program);
    renaming_ = std::move(renaming);
    request_->open().Uses(program_->fingerprint(), program_->device());
    if (claim_.num_uses() == 0) return Decode();
    Enter(ExecutionState::kAwaiting);
    // Copies in parallel with the wait, so that no copy follows it.
    Copy(received_->scattered_bytes(), [this] { GatherAndAwait(); });
  }

  void GatherAndAwait() {
    if (const absl::Status gathered = GatherPayloads(); !gathered.ok()) return Fail(gathered);
    request_->open().At(Stage::kAwait);
    const auto wait = std::make_shared<RequestWait>(*request_);
    const auto waiting = std::make_shared<std::shared_ptr<Execution>>(shared_from_this());  // for who ends the wait
    const bool ready = claim_.ReadyOrElse([wait, waiting] {
      if (!wait->End()) return;
      std::shared_ptr<Execution> self = std::move(*waiting);
      RpcRequest* const request = self->request_;
      request->ContinueInTurn([self = std::move(self)] { self->EndWait(); });
    });
    if (ready) return EndWait();
    wait->Watch([waiting](const absl::Status& status) {
      const std::shared_ptr<Execution> self = std::move(*waiting);
      self->stages().End(Stage::kAwait);
      self->request_->Continue([&] { self->Fail(status); });
    });
  }

  void EndWait() {
    stages().End(Stage::kAwait);
    Decode();
  }

  absl::Status GatherPayloads() {
    return received_->Gather(request_->parts().tensors.payloads, request_->parts().tensors.parallel_for);
  }

  absl::StatusOr<RunRequest> MakeRun() {
    const v1::ExecuteRequest& message = received_->message;
    RETURN_IF_ERROR(claim_.CheckReady());
    RETURN_IF_ERROR(request_->CheckWanted());
    if (static_cast<size_t>(message.results_size()) > program_->program().outputs.size()) {
      return Refuse(Refusal::kArgumentCount,
                    absl::StrCat("the program has ", program_->program().outputs.size(),
                                 " outputs, but there are options for ", message.results_size()));
    }
    ASSIGN_OR_RETURN(shared_,
                     SharedResults::Find(message, request_->parts().tensors.regions, request_->caller().tenant));
    RunRequest run;
    run.program = program_;
    run.deadline = request_->deadline();
    run.cancel = request_->cancel();
    run.profile = message.profile() || request_->record().trace.is_sampled();
    run.segment_times = request_->parts().observers.segment_times;
    run.quarantine = request_->parts().programs.quarantine;
    run.compile_pool = request_->parts().programs.compile_pool;
    run.tenant = request_->caller().tenant;
    run.priority = static_cast<int32_t>(std::min<int64_t>(message.priority(), request_->parts().devices.max_priority));
    run.started = started_;
    for (size_t i = 0; i < claim_.num_uses(); ++i) run.resident_bytes += claim_.TypeOf(i).num_bytes();
    run.events = executor_->events();
    // A large copy for a run without room would be in vain; of others Submit asks.
    const int64_t argument_bytes = request_->record().received_bytes + run.resident_bytes;
    if (argument_bytes >= kLongBytes && !program_->may_be_tiny(argument_bytes)) {
      RETURN_IF_ERROR(executor_->CheckRoom(run));
    }
    RETURN_IF_ERROR(GatherPayloads());
    for (size_t i = 0; i < claim_.num_uses(); ++i) writable_.push_back(claim_.IsWritable(i));
    ASSIGN_OR_RETURN(run.arguments, DecodeArguments(received_, *program_, claim_, absl::MakeConstSpan(writable_),
                                                    request_->parts(), request_->caller().tenant, &copies_));
    run.destinations = shared_.Destinations(message, run.arguments);
    for (const v1::ResultOption& option : message.results()) run.stays.push_back(!IsSent(option));
    if (claim_.session() != nullptr) {
      RETURN_IF_ERROR(kept_.Charge(*program_, run.arguments, claim_, absl::MakeConstSpan(writable_)));
      run.resident_bytes += kept_.charged_bytes();
    }
    return run;
  }

  void Decode() {
    Enter(ExecutionState::kDecoding);
    request_->open().At(Stage::kDecode);
    const bool is_known = claim_.num_uses() == 0 || claim_.CheckReady().ok();
    Copy(is_known ? CopiedBytes(*received_, *program_, claim_, request_->parts()) : 0, [this] { EndDecoding(); });
  }

  // Goes on with a step that copies so many bytes of arguments: here, or in a reading turn if that takes long.
  void Copy(int64_t bytes, std::function<void()> step) {
    if (bytes < kLongBytes || request_->parts().admission.readers->IsCaller()) return step();
    request_->open().At(Stage::kDecode);
    const absl::Status turn = InReadingTurn(
        request_->call(), request_->deadline(), "its arguments were copied",
        [self = shared_from_this(), step = std::move(step)] { self->request_->Continue(step); },
        [self = shared_from_this()](const absl::Status& status) {
          self->stages().End(Stage::kDecode);
          self->request_->Continue([&] { self->Fail(status); });
        });
    if (!turn.ok()) Fail(turn);
  }

  void EndDecoding() {
    absl::StatusOr<RunRequest> run = MakeRun();
    stages().End(Stage::kDecode);
    if (!run.ok()) {
      TellOfRegions(request_->call(), request_->record(), run.status(), received_->message);
      return Fail(renaming_.Of(run.status()));
    }
    Prepare(*std::move(run));
  }

  // Starts the run when everything is there that no executor is to compile: its arguments' transpositions, on a device
  // that prepares slowly, and the program for their sizes.
  void Prepare(RunRequest run) {
    if (program_->prepares_slowly()) {
      for (size_t i = 0; i < run.arguments.size(); ++i) {
        RunTensor& argument = run.arguments[i];
        if (!argument.reversed || argument.reversal != nullptr) continue;
        argument.reversal = program_->FindReversal(argument.type);
        if (argument.reversal == nullptr) return CompileReversal(std::move(run), i);
      }
    }
    if (program_->is_compiled_for_sizes() && run.program == program_) {
      run.program = program_->FindForSizes(TypesOf(run));
      if (run.program == nullptr) return CompileForSizes(std::move(run));
    }
    StartRun(std::move(run));
  }

  void CompileReversal(RunRequest run, size_t argument) {
    const ConcreteType type = run.arguments[argument].type;
    AwaitMade<CompiledProgram::ReversalPtr>(
        std::move(run),
        [&](CompiledProgram::ReversalDone done) {
          return program_->CompileReversal(type, request_->parts().programs.compile_pool, request_->caller().tenant,
                                           std::move(done));
        },
        [argument](CompiledProgram::ReversalPtr made, RunRequest* of) {
          of->arguments[argument].reversal = std::move(made);
        });
  }

  void CompileForSizes(RunRequest run) {
    const std::vector<ConcreteType> types = TypesOf(run);
    AwaitMade<CompiledProgramPtr>(
        std::move(run),
        [&](CompiledProgram::SizedDone done) {
          return program_->CompileForSizes(types, request_->parts().programs.compile_pool, request_->caller().tenant,
                                           std::move(done));
        },
        [](CompiledProgramPtr made, RunRequest* of) { of->program = std::move(made); });
  }

  // Waits without a thread for a thing that the compile pool makes, gives it to the run, and goes on with Prepare.
  // `compile` asks the pool for it, as CompiledProgram::CompileForSizes does.
  template <typename Made, typename Compile, typename Take>
  void AwaitMade(RunRequest run, const Compile& compile, const Take& take) {
    if (state_ != ExecutionState::kSizing) Enter(ExecutionState::kSizing);
    request_->open().At(Stage::kCompile);
    struct Waiting {
      std::shared_ptr<Execution> self;
      RunRequest run;
    };
    const auto wait = std::make_shared<RequestWait>(*request_);
    const auto waiting = std::make_shared<Waiting>(Waiting{shared_from_this(), std::move(run)});  // for who ends it
    const auto leave = compile([wait, waiting, take](absl::StatusOr<Made> made, absl::Duration compile_time) {
      if (!wait->End()) return;
      RpcRequest* const request = waiting->self->request_;
      request->ContinueInTurn([waiting, take, made = std::move(made), compile_time] {
        Waiting taken = std::move(*waiting);
        taken.self->EndCompilation(compile_time);
        if (!made.ok()) {
          taken.run.arguments.clear();  // who is told may have use for their memory
          return taken.self->Fail(taken.self->renaming_.Of(made.status()));
        }
        take(*made, &taken.run);
        taken.self->Prepare(std::move(taken.run));
      });
    });
    if (leave == nullptr) return;
    wait->Watch([waiting, leave](const absl::Status& status) {
      leave();
      Waiting taken = std::move(*waiting);
      taken.run.arguments.clear();
      taken.self->EndCompilation(absl::ZeroDuration());
      taken.self->request_->Continue([&] { taken.self->Fail(status); });
    });
  }

  // `time`: the part that this very call compiled.
  void EndCompilation(absl::Duration time) {
    if (time > absl::ZeroDuration()) return stages().EndWith(Stage::kLookup, Stage::kCompile, time);
    stages().End(Stage::kLookup);
  }

  static bool IsTiny(const RunRequest& run) {
    if (run.program->has_one_time()) return run.program->is_tiny({});
    return run.program->is_tiny(TypesOf(run));
  }

  static std::vector<ConcreteType> TypesOf(const RunRequest& run) {
    std::vector<ConcreteType> types;
    types.reserve(run.arguments.size());
    for (const RunTensor& argument : run.arguments) types.push_back(argument.type);
    return types;
  }

  void StartRun(RunRequest run) {
    if (IsTiny(run)) {
      Enter(ExecutionState::kRunningHere);
      if (const absl::Status held = HoldResults(&run); !held.ok()) return Respond(held);
      absl::StatusOr<RunOutcome> outcome = RunProgram(run, absl::ZeroDuration());
      run.arguments.clear();
      run.destinations.clear();
      return Respond(std::move(outcome));
    }
    const absl::Status submitted = Submit(std::move(run));
    if (!submitted.ok()) FailUnstarted(renaming_.Of(submitted));
  }

  // Hands the run to the program's device; the request is then the executor's.
  absl::Status Submit(RunRequest run) {
    RETURN_IF_ERROR(HoldResults(&run));
    run.done = [self = shared_from_this()](absl::StatusOr<RunOutcome> outcome) {
      self->request_->Continue([&] { self->Respond(std::move(outcome)); });
    };
    request_->open().Queues(started_);
    Enter(ExecutionState::kQueued);
    return executor_->Submit(std::move(run));
  }

  // Has the results counted before the run begins: a run that is refused afterwards has lost what was donated to it.
  // Results whose sizes the run decides count little until then.
  absl::Status HoldResults(RunRequest* run) {
    if (runs_here() && claim_.num_uses() == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const int64_t known, KnownSentBytes(received_->message, *program_, *run));
    if (known < kCountedAnswerBytes && (claim_.num_uses() == 0 || !DecidesSizes(*program_))) return absl::OkStatus();
    const int64_t bytes = std::max(known + static_cast<int64_t>(kStatsBytes), kCountedAnswerBytes);
    TenantBytes* const unread = request_->parts().tensors.unread_results;
    run->admit = [this, bytes, unread]() -> absl::Status {
      ASSIGN_OR_RETURN(AddedBytes held, AddedBytes::Add(unread, bytes, request_->caller().tenant));
      unread_.emplace(std::move(held));
      return absl::OkStatus();
    };
    return runs_here() ? absl::OkStatus() : unread->Check(bytes, run->tenant);
  }

  void Respond(absl::StatusOr<RunOutcome> outcome) {
    if (!outcome.ok()) return Fail(renaming_.Of(outcome.status()));
    request_->open().At(Stage::kEncode);
    EndRun();
    const bool ran_here = runs_here();
    Enter(ExecutionState::kEncoding);
    copies_.charges.clear();  // what became a result is charged as one
    std::vector<HandleClaim::Kept> kept;
    const bool has_claims = claim_.session() != nullptr;  // until they are fulfilled
    if (has_claims) {
      auto taken = kept_.Take(*program_, claim_, absl::MakeConstSpan(writable_), &outcome->results);
      if (!taken.ok()) return Fail(taken.status());
      kept = *std::move(taken);
    }
    alignas(8) char block[kStatsBytes];
    google::protobuf::Arena arena(block, sizeof(block));
    auto* const stats = google::protobuf::Arena::CreateMessage<v1::ExecutionStats>(&arena);
    EncodeStats(request_->record(), *program_, *outcome, renaming_, received_->message.profile(), stats);
    grpc::ByteBuffer response;
    const absl::Status encoded = EncodeExecuteResponse(
        received_->message.request_id(), program_->program().row_major ? Order::kRowMajor : Order::kColumnMajor,
        outcome->results, received_->message.results(), *stats,
        shared_.Write(outcome->results, request_->parts().tensors.parallel_for, request_->parts().observers.metrics),
        &response);
    if (!encoded.ok()) return Fail(encoded);
    if (const absl::Status held = HoldUntilSent(static_cast<int64_t>(response.Length())); !held.ok()) return Fail(held);
    KeepSegments(std::move(outcome->profile));
    // Nothing of the run may still read memory that the client is about to be told of: it may be donated next.
    outcome->results.clear();
    copies_.added.clear();
    shared_ = SharedResults();
    Waiters waiters;
    const absl::Status fulfilled = claim_.Fulfil(std::move(kept), &waiters);
    if (!fulfilled.ok()) return End(fulfilled, std::move(waiters));
    stages().End(Stage::kEncode);
    use_ = SessionUse();
    // Little memory, and nothing that a session or a quota would miss meanwhile.
    Enter(ExecutionState::kAnswered);
    if (ran_here && !has_claims) request_->Keep(shared_from_this());
    request_->Reply(std::move(response));
    for (const Waiter& waiter : waiters) waiter();
  }

  absl::Status HoldUntilSent(int64_t bytes) {
    TenantBytes* const all = request_->parts().tensors.unread_results;
    const std::string& tenant = request_->caller().tenant;
    if (!unread_.has_value() && bytes < kCountedAnswerBytes) return absl::OkStatus();
    if (!unread_.has_value() && claim_.num_uses() == 0) {
      ASSIGN_OR_RETURN(AddedBytes added, AddedBytes::Add(all, bytes, tenant));
      unread_.emplace(std::move(added));
    } else if (!unread_.has_value()) {
      unread_.emplace(AddedBytes::Adopt(all, 0, tenant));
    }
    unread_->Overdraw(bytes);  // a refusal would lose what was donated
    request_->HoldUntilSent(*std::exchange(unread_, std::nullopt));
    return absl::OkStatus();
  }

  void Enter(ExecutionState next) {
    assert(MayFollow(next, state_));
    state_ = next;
  }

  bool runs_here() const { return state_ == ExecutionState::kRunningHere; }
  bool has_run() const { return runs_here() || state_ == ExecutionState::kQueued; }

  StageTimes& stages() { return request_->record().stages; }

  // Tells waiting from running, also for runs that expired on the way.
  void EndRun() {
    if (!has_run()) return;
    if (started_->has_begun()) stages().EndAt(Stage::kQueue, started_->time());
    stages().End(started_->has_begun() ? Stage::kCompute : Stage::kQueue);
  }

  // For the spans of the call.
  void KeepSegments(std::vector<SegmentProfile> profile) {
    if (!request_->record().trace.is_sampled()) return;
    profile.resize(std::min(profile.size(), kMaxSpanSegments));
    for (SegmentProfile& segment : profile) segment.nodes = {};  // of which no span tells
    request_->record().segments = std::move(profile);
  }

  void Fail(const absl::Status& status) {
    EndRun();
    if (started_->has_begun()) claim_.Start();
    FailUnstarted(status);
  }

  // Fails a request whose run was not taken, or that has none.
  void FailUnstarted(const absl::Status& status) { End(status, claim_.Fail(status)); }

  void End(const absl::Status& status, Waiters waiters) {
    Enter(ExecutionState::kAnswered);
    use_ = SessionUse();
    copies_.added.clear();
    unread_.reset();
    shared_ = SharedResults();
    request_->Fail(status);
    for (const Waiter& waiter : waiters) waiter();
  }

  RpcRequest* const request_;  // until it is answered
  const std::shared_ptr<ReceivedExecute> received_;
  SessionUse use_;
  HandleClaim claim_;
  absl::InlinedVector<bool, 16> writable_;  // by use of the claim: the run may write over it
  ArgumentCopies copies_;
  SharedResults shared_;
  KeptResults kept_;
  std::optional<AddedBytes> promised_bytes_;
  std::optional<AddedBytes> unread_;  // the results, from the beginning of the run until the response has them
  CompiledProgramPtr program_;
  DeviceExecutor* executor_ = nullptr;  // of its device
  Renaming renaming_;                   // of the program's names into the graph's
  const std::shared_ptr<RunStart> started_ = std::make_shared<RunStart>();
  ExecutionState state_ = ExecutionState::kArrived;
};

}  // namespace

void StartExecution(RpcRequest* request, ReceivedExecute received, bool poisons) {
  std::make_shared<Execution>(request, std::move(received))->Begin(poisons, absl::OkStatus());
}

void RefuseExecution(RpcRequest* request, ReceivedExecute received, const absl::Status& refusal) {
  std::make_shared<Execution>(request, std::move(received))->Begin(/*poisons=*/true, refusal);
}

}  // namespace tensord::server
