#include "server/rpc/programs/program_lookup.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/stop_signal.h"
#include "server/lifecycle/added_bytes.h"
#include "server/rpc/calls/call_metadata.h"
#include "server/rpc/calls/request_wait.h"
#include "server/rpc/programs/program_job.h"

namespace tensord::server {
namespace {

constexpr size_t kLoggedDigits = 12;
constexpr size_t kLeastDigits = 4;  // of a shortened fingerprint
// Largest graph whose nodes are renamed at once. Larger graphs wait for their tenant's turn.
constexpr size_t kFewNodes = 256;
absl::string_view NameOf(ProgramCache::Source source) {
  switch (source) {
    case ProgramCache::Source::kCompiled:
      return "compiled";
    case ProgramCache::Source::kJoined:
      return "joined";
    case ProgramCache::Source::kDisk:
      return "disk";
    case ProgramCache::Source::kMemory:
      break;
  }
  return "memory";
}

void RecordProgram(RpcRequest* call, const ProgramCache::Found& found) {
  call->record().cache = NameOf(found.source);
  call->record().device = found.program->device();
}

// Wait for an answer of the cache. Either the answer or the end of the call takes `then`, never both.
template <typename Result>
struct ProgramAnswer {
  explicit ProgramAnswer(RpcRequest* call, std::function<void(absl::StatusOr<Result>)> then)
      : call(call), wait(std::make_shared<RequestWait>(*call)), then(std::make_shared<Then>(std::move(then))) {}
  using Then = std::function<void(absl::StatusOr<Result>)>;

  // Takes `then` after the wait has ended; null the second time.
  Then TakeThen() const { return std::exchange(*then, nullptr); }
  // Ends the wait, if the answer is not there yet, with the call's deadline or cancellation, and calls `leave`, which
  // withdraws from the compilation. The call may be gone by then.
  void Watch(const std::function<void()>& leave) const {
    if (leave == nullptr) return;
    wait->Watch([answer = *this, leave](const absl::Status& status) {
      const Then then = answer.TakeThen();
      leave();
      answer.call->record().stages.End(Stage::kLookup);
      answer.call->Continue([&] { then(status); });
    });
  }

  RpcRequest* call;
  std::shared_ptr<RequestWait> wait;
  std::shared_ptr<Then> then;
};

}  // namespace

CompiledProgramPtr FindProgramInMemory(RpcRequest* call, const Fingerprint& fingerprint) {
  absl::StatusOr<CompiledProgramPtr> found = call->parts().programs.cache->Find(fingerprint);
  if (!found.ok() || !(*found)->is_of(call->caller().tenant)) return nullptr;
  if (!CheckQuarantine(call->parts().programs, fingerprint).ok()) return nullptr;
  call->record().fingerprint = fingerprint.ToHex().substr(0, kLoggedDigits);
  RecordProgram(call, {.program = *found});
  return *std::move(found);
}

void FindProgram(RpcRequest* call, absl::string_view fingerprint, FoundThen then) {
  const std::optional<Fingerprint> parsed = Fingerprint::FromHex(fingerprint);
  if (!parsed.has_value()) {
    return then(Refuse(Refusal::kProgramNotFound,
                       absl::StrCat("no program has the fingerprint \"", fingerprint.substr(0, 64),
                                    "\", which is none; compile the graph and use what Compile returns")));
  }
  call->record().fingerprint = std::string(fingerprint.substr(0, kLoggedDigits));
  call->open().At(Stage::kLookup);
  const ServiceParts& parts = call->parts();
  absl::StatusOr<CompiledProgramPtr> here = parts.programs.cache->Find(*parsed);
  const auto end_lookup = [call] { call->record().stages.End(Stage::kLookup); };
  if (here.ok() && !(*here)->is_of(call->caller().tenant)) here = ProgramCache::RefuseUnknown(*parsed);
  const absl::Status quarantined = CheckQuarantine(parts.programs, *parsed);
  if (here.ok() && quarantined.ok()) {
    end_lookup();
    RecordProgram(call, {.program = *here});
    return then(*std::move(here));
  }
  if (!quarantined.ok() || parts.programs.store == nullptr || !parts.programs.store->Contains(*parsed)) {
    end_lookup();
    return then(quarantined.ok() ? std::move(here).status() : quarantined);
  }
  call->open().Uses(*parsed, "");
  const ProgramAnswer<CompiledProgramPtr> answer(call, std::move(then));
  const auto leave = parts.programs.cache->FindOrRestore(
      *parsed, [&parts, fingerprint = *parsed] { return RestoreProgram(parts, fingerprint); },
      [call, fingerprint = *parsed, end_lookup, answer](absl::StatusOr<ProgramCache::Found> found) {
        if (!answer.wait->End()) return;
        if (found.ok() && !found->program->is_of(call->caller().tenant)) {
          found = ProgramCache::RefuseUnknown(fingerprint);
        }
        call->ContinueInTurn([call, end_lookup, then = answer.TakeThen(), found = std::move(found)] {
          end_lookup();
          if (!found.ok()) return then(found.status());
          RecordProgram(call, *found);
          then(found->program);
        });
      },
      call->caller().tenant);
  answer.Watch(leave);
}

absl::StatusOr<Fingerprint> CompleteFingerprint(RpcRequest* call, absl::string_view prefix) {
  const RequestRecord& record = call->record();
  RETURN_IF_ERROR(call->parts().admission.authenticator->CheckRole(Role::kAdmin, "a program's name by its first digits",
                                                                   record.method, call->call().peer(), call->caller(),
                                                                   IdsOf(record)));
  if (prefix.size() < kLeastDigits) {
    return Refuse(Refusal::kMalformedMessage,
                  absl::StrCat("a fingerprint is named by ", kLeastDigits, " digits at least: \"", prefix, "\""));
  }
  const ServiceParts& parts = call->parts();
  absl::flat_hash_set<Fingerprint> found, others;
  for (const ProgramCache::Listed& listed : parts.programs.cache->List()) {
    const Fingerprint& fingerprint = listed.program->fingerprint();
    (listed.program->is_of(call->caller().tenant) ? found : others).insert(fingerprint);
  }
  if (parts.programs.store != nullptr) {
    for (const Fingerprint& fingerprint : parts.programs.store->List()) {
      if (!others.contains(fingerprint)) found.insert(fingerprint);
    }
  }
  absl::erase_if(found, [prefix](const Fingerprint& f) { return !absl::StartsWith(f.ToHex(), prefix); });
  if (found.size() == 1) return *found.begin();
  if (found.empty()) {
    return Refuse(Refusal::kProgramNotFound,
                  absl::StrCat("no program here has a fingerprint that begins with \"", prefix.substr(0, 64), "\""));
  }
  return Refuse(
      Refusal::kFingerprintAmbiguous,
      absl::StrCat(found.size(), " programs have fingerprints that begin with \"", prefix, "\"; give more digits"));
}

void CompileProgram(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options, ProgramThen then) {
  absl::StatusOr<ProgramJob> decoded =
      DecodeJob(call->parts(), call->caller().tenant, graph, options, [call] { return call->CheckWanted(); });
  if (!decoded.ok()) return then(std::move(decoded).status());
  call->record().device = decoded->settings.device;
  ProgramKey key = MakeProgramKey(decoded->graph, decoded->settings);
  call->record().fingerprint = key.fingerprint.ToHex().substr(0, kLoggedDigits);

  call->open().Uses(key.fingerprint, decoded->settings.device);
  call->open().At(Stage::kCompile);

  const auto job = std::make_shared<ProgramJob>(*std::move(decoded));
  const Fingerprint fingerprint = key.fingerprint;
  // The key copies everything in the graph, and the compiler needs memory beside both.
  std::shared_ptr<const AddedBytes> bytes = call->HoldBytes();
  absl::StatusOr<AddedBytes> added = AddedBytes::Add(
      &call->parts().admission.gate->bytes(), static_cast<int64_t>(key.bytes.size()) + BytesToCompile(job->graph),
      call->caller().tenant, bytes == nullptr ? 0 : bytes->bytes());
  if (!added.ok()) return then(std::move(added).status());
  // Both count until they are freed, which may be after the end of the call.
  auto compile = [&parts = call->parts(), job, fingerprint, bytes = std::move(bytes),
                  key_bytes = std::make_shared<const AddedBytes>(*std::move(added))]() mutable {
    absl::StatusOr<CompiledProgramPtr> program = CompileJob(parts, job.get(), fingerprint);
    bytes = nullptr;
    key_bytes = nullptr;
    return program;
  };
  const ProgramAnswer<ProgramOfGraph> answer(call, std::move(then));
  const auto leave = call->parts().programs.cache->GetOrCompile(
      std::move(key), std::move(compile),
      [call, job, answer](absl::StatusOr<ProgramCache::Found> found) {
        if (!answer.wait->End()) return;
        // A program in memory is found on the call's own thread.
        const bool is_short =
            found.ok() && found->source == ProgramCache::Source::kMemory && job->graph.nodes().size() <= kFewNodes;
        auto go_on = [call, job, then = answer.TakeThen(), found = std::move(found)] {
          // A program that this very call compiled has taken the graph, and has its names.
          const bool is_own = found.ok() && found->source == ProgramCache::Source::kCompiled;
          if (is_own) {
            call->record().stages.EndWith(Stage::kLookup, Stage::kCompile, found->compile_time);
          } else {
            call->record().stages.End(Stage::kLookup);
          }
          if (!found.ok()) return then(found.status());
          const absl::Status quarantined = CheckQuarantine(call->parts().programs, found->program->fingerprint());
          if (!quarantined.ok()) return then(quarantined);
          call->record().cache = NameOf(found->source);
          then(ProgramOfGraph{.found = *found,
                              .renaming = is_own ? Renaming() : Renaming(found->program->names(), job->graph),
                              .executor = job->executor});
        };
        is_short ? call->Continue(std::move(go_on)) : call->ContinueInTurn(std::move(go_on));
      },
      [job] { return NamesOf(job->graph); }, call->caller().tenant);
  answer.Watch(leave);
}

void CompileApart(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options,
                  std::function<void(absl::StatusOr<CompiledProgramPtr>)> then) {
  absl::StatusOr<ProgramJob> decoded =
      DecodeJob(call->parts(), call->caller().tenant, graph, options, [call] { return call->CheckWanted(); });
  if (!decoded.ok()) return then(std::move(decoded).status());
  const auto job = std::make_shared<ProgramJob>(*std::move(decoded));
  const Fingerprint fingerprint = MakeProgramKey(job->graph, job->settings).fingerprint;
  call->open().Uses(fingerprint, job->settings.device);
  call->open().At(Stage::kCompile);
  const ProgramAnswer<CompiledProgramPtr> answer(call, std::move(then));
  const ServiceParts& parts = call->parts();
  const auto abandoned = std::make_shared<std::atomic<bool>>(false);
  auto work = [call, &parts, job, fingerprint, answer, abandoned, bytes = call->HoldBytes()]() mutable {
    StopSignal stop(abandoned.get());
    const StopSignal::Scope scope(&stop);
    const absl::Time start = SteadyNow();
    absl::StatusOr<CompiledProgramPtr> program = CompileJob(parts, job.get(), fingerprint);
    bytes = nullptr;
    if (!answer.wait->End()) return;
    const absl::Duration time = SteadyNow() - start;
    call->ContinueInTurn([call, then = answer.TakeThen(), program = std::move(program), time] {
      call->record().stages.EndWith(Stage::kLookup, Stage::kCompile, time);
      then(program);
    });
  };
  const absl::StatusOr<CompilePool::Ticket> ticket =
      parts.programs.compile_pool->Submit(call->caller().tenant, std::move(work));
  if (!ticket.ok()) return answer.TakeThen()(ticket.status());
  answer.Watch([pool = parts.programs.compile_pool, ticket = *ticket, abandoned] {
    abandoned->store(true, std::memory_order_relaxed);
    pool->Drop(ticket);
  });
}

}  // namespace tensord::server
