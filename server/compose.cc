#include "server/compose.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "server/config/automatic_settings.h"
#include "server/config/config_file.h"
#include "server/identity/identity_policy.h"
#include "server/identity/tls_material.h"
#include "server/metrics_sources.h"
#include "server/part_settings.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/operators/channelz_service.h"
#include "server/tracing/tracer_options.h"
#include "server/version.h"

namespace tensord::server {
namespace {

// How long a program that ended a neighbour may still run here: less than a client pauses before it repeats a call.
constexpr absl::Duration kQuarantineLooks = absl::Milliseconds(50);

// Adds the parts that know callers, and the credentials shown to those who connect.
absl::Status AddIdentity(const ServerConfig& config, IdentityPolicy policy, ServerParts* parts) {
  parts->control_metrics = std::make_unique<ControlMetrics>(*parts->metrics->registry());
  parts->audit = std::make_unique<Audit>(parts->log.get(),
                                         [alarms = parts->alarms.get()](absl::Time time, std::function<void()> ring) {
                                           alarms->Set(time, std::move(ring));
                                         });
  parts->authenticator = std::make_unique<Authenticator>(parts->control_metrics.get(), parts->audit.get());
  parts->authenticator->Replace(std::move(policy));
  if (config.tls().certificate().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(TlsMaterial material, LoadTlsMaterial(config.tls(), absl::Now()));
  ShowExpiry(material, parts->control_metrics.get());
  parts->certificate_lines = std::make_unique<CertificateLines>(parts->log.get(), parts->alarms.get());
  parts->certificate_lines->Watch(material);
  parts->tls = std::make_shared<TlsStore>(std::move(material));
  return absl::OkStatus();
}

absl::Status AddTracing(const ServerConfig& config, ServerParts* parts) {
  parts->trace_metrics = std::make_unique<TraceMetrics>(*parts->metrics->registry());
  if (config.tracing().endpoint().empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tracer::Options options, LoadTracerOptions(config.tracing(), Version()));
  parts->tracer = std::make_unique<Tracer>(std::move(options), parts->trace_metrics.get(), parts->log.get());
  return absl::OkStatus();
}

std::unique_ptr<SessionStore> MakeSessions(const ServerConfig::Sessions& config, const ServerParts* parts) {
  SessionStore::Limits limits = SessionLimitsOf(config);
  limits.connected = [parts] { return parts->connections->OpenPeers(); };
  limits.resident_changed = [executors = parts->executors.get()](const std::string& device, int64_t more) {
    const absl::StatusOr<DeviceExecutor*> executor = executors->Find(device);
    if (executor.ok()) (*executor)->AddResident(more);
  };
  return std::make_unique<SessionStore>(limits);
}

// Returns null if no memory is shared.
std::unique_ptr<RegionStore> MakeRegions(const ServerConfig::SharedMemory& config,
                                         std::shared_ptr<HostBufferPool> memory) {
  if (config.listen().empty()) return nullptr;
  return std::make_unique<RegionStore>(RegionLimitsOf(config), std::move(memory));
}

absl::StatusOr<std::unique_ptr<ProgramStore>> OpenStore(const ServerConfig& config, const ServerParts& parts) {
  if (config.program_cache().disk_path().empty()) return nullptr;
  const auto uses = [cache = parts.cache.get(), last = SteadyNow()]() mutable {
    const absl::Time since = std::exchange(last, SteadyNow());
    std::vector<ProgramStore::Use> used;
    for (const ProgramCache::Listed& listed : cache->UsedSince(since)) {
      used.push_back({.fingerprint = listed.program->fingerprint(), .time = listed.last_used});
    }
    return used;
  };
  return ProgramStore::Open({.folder = config.program_cache().disk_path(),
                             .max_bytes = config.program_cache().disk_bytes(),
                             .registry = &parts.families->registry(),
                             .uses = uses,
                             .warn = [log = parts.log.get()](absl::string_view event, const std::string& message) {
                               log->Event(LogLevel::kWarning, event, message);
                             }});
}

absl::StatusOr<std::unique_ptr<Quarantine>> OpenQuarantine(const ServerConfig& config, const ServerParts& parts) {
  if (parts.store == nullptr) return nullptr;
  return Quarantine::Open(
      {.folder = config.program_cache().disk_path(),
       .version = absl::StrCat(Version(), " ", GitRevision()),
       .warn = [log = parts.log.get()](absl::string_view event,
                                       const std::string& message) { log->Event(LogLevel::kWarning, event, message); },
       .added = [cache = parts.cache.get()](const Fingerprint& fingerprint) { cache->Evict(fingerprint); }});
}

// Watches the files of other servers, so that programs in memory are refused too. Never within a call: a folder may
// have any number of files.
std::unique_ptr<FileWatch> WatchQuarantine(Quarantine* quarantine) {
  if (quarantine == nullptr) return nullptr;
  const std::vector<std::string> paths = {quarantine->path()};
  return std::make_unique<FileWatch>(
      kQuarantineLooks, "", [paths] { return paths; }, [quarantine] { return quarantine->Look(); });
}

void AddConnections(const ServerConfig& config, ServerParts* parts) {
  parts->connections = std::make_unique<ConnectionPlaces>(ConnectionPlacesOf(config));
  parts->admin_connections =
      std::make_unique<ConnectionPlaces>(ConnectionPlaces::Bounds{.most = kMostAdminConnections});
  // A client that takes back all its calls may have begun as many again and take them back before it is seen to read.
  constexpr int64_t kCancelsOfAStream = 2, kMoreCancelsAtOnce = 64;
  // gRPC counts decoded bytes, and the longest code of a byte has four.
  constexpr int64_t kLongestCode = 4;
  const int64_t metadata = MostMetadataOfAConnection(config.limits().metadata_bytes());
  const FrameLimits limits = {
      .header_bytes = kLongestCode * metadata,
      .cancels_at_once = kCancelsOfAStream * config.limits().streams_per_connection() + kMoreCancelsAtOnce,
      .cancels_per_second = config.limits().cancels_per_second(),
      .early_calls = config.limits().streams_per_connection(),
      .early_header_bytes = metadata};
  const std::chrono::milliseconds most_unread(config.limits().unread_ms());
  parts->connection_bounds = std::make_shared<ConnectionBounds>(limits, most_unread);
  parts->admin_connection_bounds = std::make_shared<ConnectionBounds>(limits, most_unread);
}

void AddLog(const ServerConfig& config, ServerParts* parts) {
  parts->recorder = std::make_unique<FlightRecorder>(FlightRecorder::Options{
      .entries = config.flight_recorder().entries(), .slow = absl::Milliseconds(config.flight_recorder().slow_ms())});
  parts->log = std::make_unique<Log>(Log::Options{.level = LogLevelFromName(config.log().level()),
                                                  .requests = config.log().requests(),
                                                  .recorder = parts->recorder.get()});
  for (const std::string& family : parts->families->loaded()) {
    parts->log->Event(LogLevel::kInfo, "family loaded", family);
  }
}

void AddTurns(const ServerConfig& config, ServerParts* parts) {
  // As nice as executors, whose runs they continue.
  parts->operators = std::make_unique<TurnPool>(TurnPool::Options{});
  parts->turns = std::make_unique<TurnPool>(TurnPool::Options{.niceness = config.cpu().niceness()});
  // As many as gRPC has for its callbacks: reading takes no more processors than it took there.
  parts->readers = std::make_unique<TurnPool>(
      TurnPool::Options{.threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()) / 2),
                        .bounds = ReaderBoundsOf(config),
                        .niceness = config.cpu().niceness()});
}

absl::Status AddPrograms(const ServerConfig& config, ServerParts* parts) {
  parts->compile_pool =
      std::make_unique<CompilePool>(config.compiler().threads(), CompileBoundsOf(config), config.compiler().niceness());
  parts->bindings = {.most_operations = config.limits().run_operations(),
                     .max_sets = config.program_cache().size_sets(),
                     .max_bytes = config.program_cache().size_set_bytes(),
                     .stats = std::make_shared<BindingStats>()};
  parts->cache = std::make_unique<ProgramCache>(
      ProgramCache::Options{.max_bytes = config.program_cache().bytes(),
                            .collide = config.testing().collide_fingerprints(),
                            .refused = {.keep = absl::Milliseconds(config.program_cache().negative_ms())},
                            .sized = parts->bindings.stats},
      parts->compile_pool.get());
  ASSIGN_OR_RETURN(parts->store, OpenStore(config, *parts));
  ASSIGN_OR_RETURN(parts->quarantine, OpenQuarantine(config, *parts));
  return absl::OkStatus();
}

void AddTensors(const ServerConfig& config, ServerParts* parts) {
  parts->sessions = MakeSessions(config.sessions(), parts);
  for (const auto& executor : parts->executors->all()) {
    executor->events()->OnLoss([sessions = parts->sessions.get()] { sessions->LoseTensors(); });
  }
  parts->payloads = parts->devices->payloads();
  parts->regions = MakeRegions(config.shared_memory(), parts->devices->memory());
  parts->unread_results = std::make_unique<TenantBytes>(
      TenantBytes::Names{.tenant_limit = "scheduling.tenant_unread_percent",
                         .tenant_bytes = "bytes of results that one tenant's clients have not read yet"},
      TenantBytes::kUnlimited, MostUnreadOf(config));
}

void AddAdmission(const ServerConfig& config, ServerParts* parts) {
  parts->gate = std::make_unique<CallGate>(
      config.limits().in_flight_bytes(),
      ShareOf(config.limits().in_flight_bytes(), config.scheduling().tenant_in_flight_percent()));
  parts->rates = std::make_unique<RateLimiter>(RateOf(config));
}

ProgramParts ProgramPartsOf(const ServerConfig& config, const ServerParts& parts) {
  const ServerConfig::Compiler& compiler = config.compiler();
  return {.registry = &parts.families->registry(),
          .compile_pool = parts.compile_pool.get(),
          .cache = parts.cache.get(),
          .store = parts.store.get(),
          .quarantine = parts.quarantine.get(),
          .unserved = parts.unserved.get(),
          .bindings = parts.bindings,
          .disabled_passes = {compiler.disabled_passes().begin(), compiler.disabled_passes().end()},
          .enabled_passes = {compiler.enabled_passes().begin(), compiler.enabled_passes().end()},
          .by_tenant = config.program_cache().by_tenant(),
          .print_and_parse = config.testing().print_and_parse()};
}

TensorParts TensorPartsOf(const ServerParts& parts) {
  return {.sessions = parts.sessions.get(),
          .payloads = parts.payloads.get(),
          .parallel_for = parts.devices->parallel_for(),
          .regions = parts.regions.get(),
          .unread_results = parts.unread_results.get()};
}

std::vector<ServerLimit> LimitsOf(const ServerConfig& config, const Devices& devices) {
  std::vector<ServerLimit> limits = ServerLimitsOf(config);
  if (devices.cuda_tensor_bytes() > 0) limits.push_back({kCudaTensorBytesLimit, devices.cuda_tensor_bytes()});
  return limits;
}

AdmissionParts AdmissionPartsOf(const ServerConfig& config, ServerParts* parts) {
  return {.authenticator = parts->authenticator.get(),
          .gate = parts->gate.get(),
          .rates = parts->rates.get(),
          .connections = ListensAtTcp(config) ? parts->connections.get() : nullptr,
          .alarms = parts->alarms.get(),
          .turns = parts->turns.get(),
          .operators = parts->operators.get(),
          .readers = parts->readers.get(),
          .fair_polling = &parts->fair_polling,
          .graph_limits = GraphLimitsOf(config),
          .server_limits = LimitsOf(config, *parts->devices),
          .default_deadline = absl::Milliseconds(config.limits().default_deadline_ms()),
          .message_bytes = config.limits().message_bytes(),
          .metadata_bytes = config.limits().metadata_bytes(),
          .stream_requests = config.sessions().stream_requests(),
          .stream_bytes = config.sessions().stream_bytes()};
}

ObserverParts ObserverPartsOf(const ServerParts& parts) {
  return {.metrics = parts.metrics.get(),
          .segment_times = parts.segment_times.get(),
          .log = parts.log.get(),
          .audit = parts.audit.get(),
          .open_calls = parts.open_calls.get(),
          .recorder = parts.recorder.get(),
          .tracer = parts.tracer.get(),
          .profiler = parts.profiler.get()};
}

void AddServices(const ServerConfig& config, ServerParts* parts) {
  parts->service_parts = {
      .version = std::string(Version()),
      .programs = ProgramPartsOf(config, *parts),
      .devices = {.executors = parts->executors.get(), .max_priority = config.scheduling().max_priority()},
      .tensors = TensorPartsOf(*parts),
      .admission = AdmissionPartsOf(config, parts),
      .observers = ObserverPartsOf(*parts)};
  parts->compute_service = MakeComputeService(&parts->service_parts);
  parts->admin_service = MakeAdminService(&parts->service_parts);
  parts->channelz_service = MakeChannelzService(&parts->service_parts);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerParts>> Compose(const ServerConfig& given, const OtherBackends& others) {
  ASSIGN_OR_RETURN(IdentityPolicy policy, LoadIdentityPolicy(given));
  ServerConfig config = Decided(given, policy);
  RETURN_IF_ERROR(CheckDeviceSettings(config));
  RETURN_IF_ERROR(UseInstructionSet(config));
  auto parts = std::make_unique<ServerParts>();
  ASSIGN_OR_RETURN(parts->families, LoadFamilies(config));
  AddLog(config, parts.get());
  ASSIGN_OR_RETURN(parts->devices, Devices::Create(config, *parts->families, parts->log.get(), others));
  config = parts->devices->Decided(std::move(config));
  parts->executors = std::make_unique<ExecutorPool>();
  parts->devices->AddExecutors(config, parts->executors.get());
  AddTurns(config, parts.get());
  RETURN_IF_ERROR(AddPrograms(config, parts.get()));
  AddTensors(config, parts.get());
  AddAdmission(config, parts.get());
  AddConnections(config, parts.get());
  parts->metrics = std::make_unique<Metrics>(parts->devices->names());
  RETURN_IF_ERROR(AddIdentity(config, std::move(policy), parts.get()));
  RETURN_IF_ERROR(AddTracing(config, parts.get()));
  parts->segment_times = std::make_unique<SegmentTimes>();
  parts->collectables = {MakeMetricsPage(parts.get())};
  parts->profiler = std::make_unique<Profiler>();
  AddServices(config, parts.get());
  parts->quarantine_watch = WatchQuarantine(parts->quarantine.get());
  return parts;
}

}  // namespace tensord::server
