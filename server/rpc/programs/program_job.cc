#include "server/rpc/programs/program_job.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/program_at_work.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"
#include "engine/ir/text_round_trip.h"
#include "engine/runtime/programs/constant_bytes.h"
#include "proto/codec/graph_codec.h"
#include "proto/codec/type_codec.h"
#include "server/rpc/programs/unserved_programs.h"

namespace tensord::server {
namespace {

// Bounds on the memory of passes and plans for each operand of a node. In another algebra a node becomes up to 20.
constexpr int64_t kCompileBytesOfEdge = 1000;
constexpr int64_t kAlgebraBytesOfEdge = 7000;
constexpr int64_t kFreeEdges = 10'000;

// Returns the server's and the request's, as a set: neither order nor repetition may make another program of it.
std::vector<std::string> PassesOf(const std::vector<std::string>& server,
                                  const google::protobuf::RepeatedPtrField<std::string>& request) {
  std::vector<std::string> passes = server;
  passes.insert(passes.end(), request.begin(), request.end());
  std::sort(passes.begin(), passes.end());
  passes.erase(std::unique(passes.begin(), passes.end()), passes.end());
  return passes;
}

// Counts the phases of compilations, also of those for the sizes of runs.
CompileWatch WatchOf(Metrics* metrics) {
  return [metrics](CompilePhase phase, absl::Duration time) { metrics->Compiled(phase, time); };
}

// Tells whether the client of this graph could get that program from this server today.
bool IsServed(const ServiceParts& parts, const StoredProgram& stored) {
  const std::vector<std::string>& disabled = stored.settings.disabled_passes;
  for (const std::string& pass : parts.programs.disabled_passes) {
    if (std::find(disabled.begin(), disabled.end(), pass) == disabled.end()) return false;
  }
  if (stored.settings.enabled_passes != parts.programs.enabled_passes) return false;
  // A program shared by all, or the operator's, is not for tenants that are to be apart, and the other way round.
  if (stored.settings.tenant.empty() == parts.programs.by_tenant) return false;
  const absl::StatusOr<v1::Graph> wire = codec::EncodeGraph(stored.graph);
  const Order order = stored.settings.row_major ? Order::kRowMajor : Order::kColumnMajor;
  return wire.ok() &&
         codec::DecodeGraph(*wire, *parts.programs.registry, parts.admission.graph_limits.now(), order).ok();
}

}  // namespace

absl::StatusOr<ProgramJob> DecodeJob(const ServiceParts& parts, const std::string& tenant, const v1::Graph& graph,
                                     const v1::CompileOptions& options,
                                     const std::function<absl::Status()>& still_wanted) {
  const auto& unknown = options.GetReflection()->GetUnknownFields(options);
  if (!unknown.empty()) {
    return Refuse(Refusal::kUnsupportedRequest,
                  absl::StrCat("this server does not know field ", unknown.field(0).number(), " of CompileOptions"));
  }
  ASSIGN_OR_RETURN(const Order order, codec::DecodeOrder(options.order(), Order::kColumnMajor));
  ASSIGN_OR_RETURN(DeviceExecutor * executor, parts.devices.executors->Find(options.device()));
  const codec::GraphLimits limits = parts.admission.graph_limits.now();
  ProgramJob job;
  ASSIGN_OR_RETURN(job.graph, codec::DecodeGraph(graph, *parts.programs.registry, limits, order, still_wanted));
  if (parts.programs.print_and_parse) {
    ASSIGN_OR_RETURN(job.graph, ReadBackFromText(job.graph, *parts.programs.registry));
  }
  job.executor = executor;
  job.settings.device = executor->device();
  job.settings.row_major = order == Order::kRowMajor;
  job.settings.disabled_passes = PassesOf(parts.programs.disabled_passes, options.disabled_passes());
  job.settings.enabled_passes = parts.programs.enabled_passes;
  if (parts.programs.by_tenant) job.settings.tenant = tenant;
  job.settings.most_nodes = limits.graph_nodes;
  return job;
}

int64_t BytesToCompile(const Graph& graph) {
  int64_t edges = 0;
  for (const Node& node : graph.nodes()) edges += static_cast<int64_t>(node.operands.size());
  const int64_t of_edge = graph.algebra() == Algebra::kStandard ? kCompileBytesOfEdge : kAlgebraBytesOfEdge;
  return of_edge * std::max<int64_t>(0, edges - kFreeEdges);
}

int64_t BytesToDifferentiate(const Graph& graph, bool split) {
  return BytesToCompile(graph) + (split ? 3 : 2) * ConstantBytes(graph);
}

absl::Status CheckQuarantine(const ProgramParts& programs, const Fingerprint& fingerprint) {
  return programs.quarantine == nullptr ? absl::OkStatus() : programs.quarantine->Check(fingerprint);
}

absl::StatusOr<CompiledProgramPtr> CompileJob(const ServiceParts& parts, ProgramJob* job,
                                              const Fingerprint& fingerprint) {
  RETURN_IF_ERROR(CheckQuarantine(parts.programs, fingerprint));
  try {
    std::optional<Graph> kept;  // the compiler takes the other
    if (parts.programs.store != nullptr) kept = job->graph;
    ASSIGN_OR_RETURN(CompiledProgramPtr program,
                     Compile(std::move(job->graph), job->settings, fingerprint, job->executor->backend(),
                             parts.programs.bindings, WatchOf(parts.observers.metrics)));
    if (kept.has_value()) parts.programs.store->Put(*std::move(kept), job->settings, fingerprint);
    return program;
  } catch (const std::exception& error) {
    return Refuse(Refusal::kInternal, error.what());
  }
}

absl::StatusOr<ProgramCache::Restored> RestoreProgram(const ServiceParts& parts, const Fingerprint& fingerprint) {
  RETURN_IF_ERROR(CheckQuarantine(parts.programs, fingerprint));
  const ProgramAtWork at_work(fingerprint, ProgramWork::kRestore);
  const auto unserved = [] {
    return Refuse(Refusal::kProgramNotFound,
                  "the program on disk is from before the server's settings were changed; compile the graph "
                  "again and repeat the call");
  };
  if (parts.programs.unserved->Has(fingerprint, std::chrono::steady_clock::now())) return unserved();
  ASSIGN_OR_RETURN(StoredProgram stored, parts.programs.store->Load(fingerprint));
  if (!IsServed(parts, stored)) {
    parts.programs.unserved->Add(fingerprint, std::chrono::steady_clock::now(), parts.programs.cache->keep_refused());
    return unserved();
  }
  ASSIGN_OR_RETURN(DeviceExecutor * executor, parts.devices.executors->Find(stored.settings.device));
  stored.settings.most_nodes = parts.admission.graph_limits.now().graph_nodes;
  ProgramCache::Restored restored = {.key = std::move(stored.key), .program = nullptr};
  ASSIGN_OR_RETURN(restored.program, Compile(std::move(stored.graph), stored.settings, fingerprint, executor->backend(),
                                             parts.programs.bindings, WatchOf(parts.observers.metrics)));
  return restored;
}

}  // namespace tensord::server
