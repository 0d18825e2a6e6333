#include "server/rpc/program_lookup.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/text_round_trip.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/type_codec.h"

namespace tensord::server {
namespace {

constexpr size_t kLoggedDigits = 12;

struct Job {
  Graph graph;
  CompileSettings settings;
  Backend* backend = nullptr;
};

// The server's and the request's, as a set: neither order nor repetition may make another program of it.
std::vector<std::string> PassesOf(const std::vector<std::string>& server,
                                  const google::protobuf::RepeatedPtrField<std::string>& request) {
  std::vector<std::string> passes = server;
  passes.insert(passes.end(), request.begin(), request.end());
  std::sort(passes.begin(), passes.end());
  passes.erase(std::unique(passes.begin(), passes.end()), passes.end());
  return passes;
}

absl::StatusOr<Job> DecodeJob(const RpcRequest& call, const v1::Graph& graph, const v1::CompileOptions& options) {
  const auto& unknown = options.GetReflection()->GetUnknownFields(options);
  if (!unknown.empty()) {
    return Refuse(Refusal::kUnsupportedRequest,
                  absl::StrCat("this server does not know field ", unknown.field(0).number(), " of CompileOptions"));
  }
  ASSIGN_OR_RETURN(const Order order, codec::DecodeOrder(options.order(), Order::kColumnMajor));
  ASSIGN_OR_RETURN(DeviceExecutor * executor, call.parts().executors->Find(options.device()));
  Job job;
  ASSIGN_OR_RETURN(job.graph, codec::DecodeGraph(graph, *call.parts().registry, call.parts().graph_limits, order));
  if (call.parts().print_and_parse) {
    ASSIGN_OR_RETURN(job.graph, ReadBackFromText(job.graph, *call.parts().registry));
  }
  job.backend = executor->backend();
  job.settings.device = executor->device();
  job.settings.row_major = order == Order::kRowMajor;
  job.settings.disabled_passes = PassesOf(call.parts().disabled_passes, options.disabled_passes());
  job.settings.enabled_passes = call.parts().enabled_passes;
  return job;
}

// Takes the job's graph.
absl::StatusOr<CompiledProgramPtr> CompileJob(Job* job, const Fingerprint& fingerprint) {
  try {
    return Compile(std::move(job->graph), job->settings, fingerprint, job->backend);
  } catch (const std::exception& error) {
    return Refuse(Refusal::kInternal, error.what());
  }
}

absl::string_view NameOf(ProgramCache::Source source) {
  switch (source) {
    case ProgramCache::Source::kCompiled:
      return "compiled";
    case ProgramCache::Source::kJoined:
      return "joined";
    case ProgramCache::Source::kMemory:
      break;
  }
  return "memory";
}

}  // namespace

absl::StatusOr<CompiledProgramPtr> FindProgram(RpcRequest* call, absl::string_view fingerprint) {
  const std::optional<Fingerprint> parsed = Fingerprint::FromHex(fingerprint);
  if (!parsed.has_value()) {
    return Refuse(Refusal::kProgramNotFound,
                  absl::StrCat("no program has the fingerprint \"", fingerprint.substr(0, 64),
                               "\", which is none; compile the graph and use what Compile returns"));
  }
  ASSIGN_OR_RETURN(CompiledProgramPtr program, call->parts().cache->Find(*parsed));
  call->record().fingerprint = std::string(fingerprint.substr(0, kLoggedDigits));
  call->record().cache = NameOf(ProgramCache::Source::kMemory);
  call->record().device = program->device();
  return program;
}

void CompileProgram(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options, ProgramThen then) {
  absl::StatusOr<Job> decoded = DecodeJob(*call, graph, options);
  if (!decoded.ok()) return then(std::move(decoded).status());
  call->record().device = decoded->settings.device;
  ProgramKey key = MakeProgramKey(decoded->graph, decoded->settings);
  call->record().fingerprint = key.fingerprint.ToHex().substr(0, kLoggedDigits);

  const auto job = std::make_shared<Job>(*std::move(decoded));
  const Fingerprint fingerprint = key.fingerprint;
  const auto compile = [job, fingerprint] { return CompileJob(job.get(), fingerprint); };
  call->parts().cache->GetOrCompile(
      std::move(key), compile, [call, job, then = std::move(then)](absl::StatusOr<ProgramCache::Found> found) {
        if (!found.ok()) return call->Continue([&] { then(found.status()); });
        call->record().cache = NameOf(found->source);
        // What this very call compiled took the graph, and has its names.
        const bool is_own = found->source == ProgramCache::Source::kCompiled;
        if (is_own) call->record().compile = found->compile_time;
        Renaming renaming = is_own ? Renaming() : Renaming(found->program->names(), job->graph);
        ProgramOfGraph program = {.found = *std::move(found), .renaming = std::move(renaming)};
        call->Continue([&] { then(std::move(program)); });
      });
}

void CompileApart(RpcRequest* call, const v1::Graph& graph, const v1::CompileOptions& options,
                  std::function<void(absl::StatusOr<CompiledProgramPtr>)> then) {
  absl::StatusOr<Job> decoded = DecodeJob(*call, graph, options);
  if (!decoded.ok()) return then(std::move(decoded).status());
  const auto job = std::make_shared<Job>(*std::move(decoded));
  const Fingerprint fingerprint = MakeProgramKey(job->graph, job->settings).fingerprint;
  const bool taken = call->parts().compile_pool->Submit([call, job, fingerprint, then] {
    absl::StatusOr<CompiledProgramPtr> program = CompileJob(job.get(), fingerprint);
    call->Continue([&] { then(std::move(program)); });
  });
  if (!taken) then(Refuse(Refusal::kQueueFull, "too many compilations are waiting"));
}

}  // namespace tensord::server
