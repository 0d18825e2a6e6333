#include "server/compose.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/fft/transforms.h"
#include "backends/cpu/joins/ways.h"
#include "backends/cpu/kernel_table.h"
#include "backends/cpu/machine/blas.h"
#include "backends/cpu/machine/instruction_set.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/base/status_macros.h"
#include "engine/base/steady_time.h"
#include "engine/base/thread_niceness.h"
#include "engine/families/einsum/einsum_lowering.h"
#include "engine/families/einsum/optimal_path.h"
#include "engine/families/family_plugin.h"
#include "engine/ir/inference.h"
#include "server/config/automatic_settings.h"
#include "server/config/config_file.h"
#include "server/config/setting_options.h"
#include "server/configured_bounds.h"
#include "server/git_revision.h"
#include "server/identity/identity_policy.h"
#include "server/identity/tls_material.h"
#include "server/lifecycle/descriptor_limit.h"
#include "server/observe/metrics/collected_metrics.h"
#include "server/observe/metrics/metrics_page.h"
#include "server/observe/metrics/process_metrics.h"
#include "server/observe/metrics/segment_metrics.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/compute_service.h"
#include "server/rpc/execute/execute_response.h"
#include "server/rpc/operators/channelz_service.h"
#include "server/rpc/tensors/tensor_part.h"
#include "server/rpc/wire/message_plan.h"
#include "server/tenant_quotas.h"
#include "server/tracing/tracer_options.h"

namespace tensord::server {
namespace {

// The time for which a program that ended a neighbour may still run here: less than a client pauses before it repeats a
// call.
constexpr absl::Duration kQuarantineLooks = absl::Milliseconds(50);
constexpr absl::string_view kTensorBytesLimit = "cpu.tensor_bytes";

void AddDevice(std::string device, std::unique_ptr<Backend> backend, const DeviceExecutor::Options& options,
               ServerParts* parts) {
  parts->executors->Add(std::make_unique<DeviceExecutor>(device, backend.get(), options));
  parts->backends.push_back(std::move(backend));
  parts->devices.push_back(std::move(device));
}

DeviceExecutor::Options CpuExecutorOf(const ServerConfig& config) {
  const DeviceExecutor::Bounds bounds = CpuBoundsOf(config);
  return {.workers = config.cpu().executors(),
          .max_queued = bounds.max_queued,
          .max_queued_per_tenant = bounds.max_queued_per_tenant,
          .max_wait = bounds.max_wait,
          .ageing = bounds.ageing,
          .memory_bytes = bounds.memory_bytes,
          .niceness = config.cpu().niceness()};
}

}  // namespace

ServerConfig Decided(const ServerConfig& config, const IdentityPolicy& policy) {
  return WithAutomaticSettings(
      config, {.tensor_bytes = MostCpuTensorBytes(),
               .has_tenants = policy.table != nullptr && policy.table->num_tenants() > 1,
               .descriptors = AllowDescriptors(config.limits().connections() + DescriptorsBesideConnections(config))});
}

std::vector<ServerLimit> ServerLimitsOf(const ServerConfig& config) {
  std::vector<ServerLimit> limits = LimitSettings(config);
  const ServerLimit fixed[] = {
      {"admin.connections", kMostAdminConnections},
      {"response_bytes", kMaxResponseBytes},
      {"chunk_bytes", kMaxChunkBytes},
      {std::string(kTensorBytesLimit), MostCpuTensorBytes()},
      {"profiles", Profiler::Bounds::kProfiles},
      {"profile_ms", Profiler::Bounds::kMilliseconds},
      {"profile_samples_per_second", Profiler::Bounds::kSamplesPerSecond},
      {"shared_memory.regions", RegionStore::kMostRegions},
      {"message_items", kMostItems},
      {"value_rank", kMaxRank},
      {"expression_parts", kMaxExpressionParts},
      {"einsum_operands", kMaxEinsumOperands},
      {"einsum_incidences", kMaxEinsumIncidences},
      {"einsum_optimal_operands", OptimalSearch::kMaxTensors},
  };
  limits.insert(limits.end(), std::begin(fixed), std::end(fixed));
  return limits;
}

namespace {

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

absl::Span<const cpu::FamilyKernel> CpuTableOf(const DeviceKernels& kernels) {
  return absl::MakeConstSpan(static_cast<const cpu::FamilyKernel*>(kernels.table), kernels.count);
}

std::vector<absl::Span<const cpu::FamilyKernel>> CpuKernelsOf(const ServerFamilies& families) {
  std::vector<absl::Span<const cpu::FamilyKernel>> tables;
  for (const DeviceKernels& kernels : families.KernelsOf("cpu")) tables.push_back(CpuTableOf(kernels));
  return tables;
}

// Checks that the CPU, which every server has, can run each op of the plugin.
absl::Status AuditCpuKernels(const FamilyPlugin& plugin) {
  absl::Span<const cpu::FamilyKernel> table;
  for (const DeviceKernels& kernels : absl::MakeConstSpan(plugin.kernels, plugin.num_kernels)) {
    if (absl::string_view(kernels.device_kind) == "cpu") table = CpuTableOf(kernels);
  }
  return cpu::AuditFamilyKernels(table, absl::MakeConstSpan(plugin.ops, plugin.num_ops));
}

// The threads are as nice as the thread that makes them.
std::unique_ptr<cpu::ThreadPool> MakeNicerPool(int threads, int niceness) {
  std::unique_ptr<cpu::ThreadPool> pool;
  std::thread([&] {
    if (niceness > 0) LowerThisThread(niceness);
    pool = cpu::MakeThreadPool(threads);
  }).join();
  return pool;
}

ParallelFor ThreadsOf(cpu::ThreadPool* pool) {
  return [pool](int64_t tasks, absl::FunctionRef<void(int64_t)> fn) { pool->ParallelFor(tasks, fn); };
}

CollectedMetrics::Tables TablesOf(const cpu::FftTransforms& transforms) {
  const cpu::FftTransforms::Stats stats = transforms.stats();
  return {.bytes = stats.bytes, .hits = stats.hits, .misses = stats.misses, .evictions = stats.evictions};
}

CollectedMetrics::Resident ResidentOf(const SessionStore& sessions) {
  const SessionStore::Stats stats = sessions.stats();
  CollectedMetrics::Resident resident{
      .sessions = stats.sessions, .expired = stats.expired, .devices = {}, .evictions = {}};
  for (const auto& [device, use] : stats.devices) {
    resident.devices[device] = {.tensors = use.tensors, .bytes = use.bytes};
  }
  for (size_t i = 0; i < kNumTensorEnds; ++i) {
    resident.evictions[std::string(kTensorEndNames[i])] = stats.ends[i];
  }
  return resident;
}

void WarnOfBlas(const ServerConfig& config, Log* log) {
  if (const std::string within = BlasCoreWithin(config); !within.empty()) {
    log->Event(LogLevel::kWarning, "blas beyond isa",
               absl::StrCat("OpenBLAS runs kernels of newer processors than cpu.isa, which is ", config.cpu().isa(),
                            ": start the server with OPENBLAS_CORETYPE=", within, " in its environment"));
  }
  const std::optional<cpu::OutdatedBlasCore> outdated = cpu::FindOutdatedBlasCore();
  if (!outdated.has_value()) return;
  log->Event(LogLevel::kWarning, "outdated blas",
             absl::StrCat("OpenBLAS takes this processor for one of the kind ", outdated->core,
                          ", whose products and factorizations are several times slower: start the server with "
                          "OPENBLAS_CORETYPE=",
                          outdated->better, " in its environment"));
}

// Returns null if no memory is shared.
std::unique_ptr<RegionStore> MakeRegions(const ServerConfig::SharedMemory& config,
                                         std::shared_ptr<HostBufferPool> memory) {
  if (config.listen().empty()) return nullptr;
  return std::make_unique<RegionStore>(RegionLimitsOf(config), std::move(memory));
}

CollectedMetrics::Shared SharedOf(const RegionStore* regions, const BrokerRefusals& refusals) {
  CollectedMetrics::Shared shared;
  if (regions != nullptr) {
    const RegionStore::Stats stats = regions->stats();
    shared.regions = stats.regions;
    shared.bytes = stats.bytes;
    shared.out_of_memory = regions->out_of_memory();
  }
  const BrokerRefusals::Counts counts = refusals.counts();
  for (size_t i = 0; i < counts.size(); ++i) shared.refusals[kBrokerRefusalNames[i]] = counts[i];
  return shared;
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

// Returns the limits under the names that refusals give them.
std::vector<std::pair<std::string, int64_t>> LimitsOf(const ServiceParts& parts) {
  std::vector<std::pair<std::string, int64_t>> limits;
  for (const ServerLimit& limit : parts.server_limits) limits.emplace_back(limit.name, limit.value);
  const codec::GraphLimits graph_limits = parts.graph_limits.now();
  for (const codec::GraphLimitInfo& limit : codec::AllGraphLimits()) {
    limits.emplace_back(std::string(limit.name), graph_limits.*limit.value);
  }
  return limits;
}

CollectedMetrics::Admission AdmissionOf(const CallGate& gate) {
  const CallGate::Snapshot inside = gate.snapshot();
  return {inside.state == ServingState::kServing, inside.state == ServingState::kDraining, inside.bytes};
}

std::map<std::string, CollectedMetrics::Connections> ConnectionsOf(const ServerParts& parts) {
  return {{"calls", {parts.connections->stats(), parts.connection_bounds->ended()}},
          {"admin", {parts.admin_connections->stats(), parts.admin_connection_bounds->ended()}}};
}

std::shared_ptr<prometheus::Collectable> MakeMetricsPage(ServerParts* parts) {
  CollectedMetrics::Sources sources{
      .version = std::string(Version()),
      .git = std::string(GitRevision()),
      .executors = parts->executors.get(),
      .cache = parts->cache.get(),
      .compile_pool = parts->compile_pool.get(),
      .turns = parts->turns.get(),
      .readers = parts->readers.get(),
      .bindings = parts->bindings.stats.get(),
      .store = parts->store.get(),
      .quarantine = parts->quarantine.get(),
      .payloads = parts->payloads.get(),
      .log = parts->log.get(),
      .admission = [gate = parts->gate.get()] { return AdmissionOf(*gate); },
      .connections = [parts] { return ConnectionsOf(*parts); },
      .fft_tables = [transforms = parts->fft_transforms.get()] { return TablesOf(*transforms); },
      .resident = [sessions = parts->sessions.get()] { return ResidentOf(*sessions); },
      .shared = [parts] { return SharedOf(parts->regions.get(), *parts->broker_refusals); },
      .quotas = [parts] { return TenantQuotasOf(*parts); },
      .limits = [service_parts = &parts->service_parts] { return LimitsOf(*service_parts); }};
  return std::make_shared<MetricsPage>(std::vector<std::shared_ptr<prometheus::Collectable>>{
      parts->metrics->registry(), std::make_shared<CollectedMetrics>(std::move(sources)),
      std::make_shared<SegmentMetrics>(parts->segment_times.get()), std::make_shared<ProcessMetrics>()});
}

}  // namespace

absl::string_view Version() { return TENSORD_VERSION; }

ServerParts::~ServerParts() {
  quarantine_watch.reset();
  if (executors == nullptr) return;  // what failed to be composed
  // A call may have ended for its client while the thread that told it so is still in the lines behind.
  readers.reset();
  operators.reset();
  compile_pool.reset();
  for (const auto& executor : executors->all()) executor->Stop();
  turns.reset();
  sessions.reset();  // which tell executors of the memory that they let go
  executors.reset();
  alarms.reset();
}

absl::Status CheckInstructionSet(const ServerConfig& config) {
  const absl::Status status = CheckCpuIsa(config.cpu().isa());
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("setting cpu.isa: ", status.message()));
}

absl::Status CheckJoins(const ServerConfig& config) {
  const auto& names = config.cpu().disabled_joins();
  const absl::Status status = cpu::CheckJoinNames(std::vector<std::string>(names.begin(), names.end()));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("setting cpu.disabled_joins: ", status.message()));
}

std::string BlasCoreWithin(const ServerConfig& config) {
  for (const CpuIsa isa : MachineCpuIsas()) {
    if (config.cpu().isa() == Name(isa)) return cpu::BlasCoreWithin(isa);
  }
  return "";
}

absl::StatusOr<std::unique_ptr<const ServerFamilies>> LoadFamilies(const ServerConfig& config) {
  return ServerFamilies::Load(config, AuditCpuKernels);
}

namespace {

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

}  // namespace

absl::StatusOr<std::unique_ptr<ServerParts>> Compose(const ServerConfig& given) {
  ASSIGN_OR_RETURN(IdentityPolicy policy, LoadIdentityPolicy(given));
  const ServerConfig config = Decided(given, policy);
  RETURN_IF_ERROR(CheckInstructionSet(config));
  RETURN_IF_ERROR(CheckJoins(config));
  RETURN_IF_ERROR(UseCpuIsa(config.cpu().isa()));
  auto parts = std::make_unique<ServerParts>();
  ASSIGN_OR_RETURN(parts->families, LoadFamilies(config));
  parts->recorder = std::make_unique<FlightRecorder>(FlightRecorder::Options{
      .entries = config.flight_recorder().entries(), .slow = absl::Milliseconds(config.flight_recorder().slow_ms())});
  parts->log = std::make_unique<Log>(Log::Options{.level = LogLevelFromName(config.log().level()),
                                                  .requests = config.log().requests(),
                                                  .recorder = parts->recorder.get()});

  for (const std::string& family : parts->families->loaded()) {
    parts->log->Event(LogLevel::kInfo, "family loaded", family);
  }
  RETURN_IF_ERROR(cpu::CheckBlasCore());
  WarnOfBlas(config, parts->log.get());

  parts->executors = std::make_unique<ExecutorPool>();
  parts->pool = MakeNicerPool(config.cpu().threads(), config.cpu().niceness());
  parts->fft_transforms = std::make_unique<cpu::FftTransforms>(config.cpu().fft_table_bytes());
  parts->cpu_memory =
      HostBufferPool::Create(MostCpuTensorBytes(), config.cpu().pool_bytes(), std::string(kTensorBytesLimit));
  const CpuBackendOptions cpu = {
      .pool = parts->pool.get(),
      .fft_transforms = parts->fft_transforms.get(),
      .memory = parts->cpu_memory,
      .jit = CpuUseNamed(config.cpu().jit()),
      .epilogues = CpuUseNamed(config.cpu().epilogues()),
      .chain_block_bytes = config.cpu().chain_block_bytes(),
      .disabled_joins = {config.cpu().disabled_joins().begin(), config.cpu().disabled_joins().end()},
      .family_kernels = CpuKernelsOf(*parts->families)};
  AddDevice("cpu:0", MakeCpuBackend(cpu), CpuExecutorOf(config), parts.get());

  parts->compile_pool =
      std::make_unique<CompilePool>(config.compiler().threads(), CompileBoundsOf(config), config.compiler().niceness());
  // As nice as executors, whose runs they continue.
  parts->operators = std::make_unique<TurnPool>(TurnPool::Options{});
  parts->turns = std::make_unique<TurnPool>(TurnPool::Options{.niceness = config.cpu().niceness()});
  // As many as gRPC has for its callbacks: reading takes no more processors than it took there.
  parts->readers = std::make_unique<TurnPool>(
      TurnPool::Options{.threads = std::max(2, static_cast<int>(std::thread::hardware_concurrency()) / 2),
                        .bounds = ReaderBoundsOf(config),
                        .niceness = config.cpu().niceness()});
  parts->bindings = {.most_operations = config.limits().run_operations(),
                     .max_sets = config.program_cache().size_sets(),
                     .max_bytes = config.program_cache().size_set_bytes(),
                     .stats = std::make_shared<BindingStats>()};
  parts->sessions = MakeSessions(config.sessions(), parts.get());
  parts->cache = std::make_unique<ProgramCache>(
      ProgramCache::Options{.max_bytes = config.program_cache().bytes(),
                            .collide = config.testing().collide_fingerprints(),
                            .refused = {.keep = absl::Milliseconds(config.program_cache().negative_ms())},
                            .sized = parts->bindings.stats},
      parts->compile_pool.get());
  ASSIGN_OR_RETURN(parts->store, OpenStore(config, *parts));
  ASSIGN_OR_RETURN(parts->quarantine, OpenQuarantine(config, *parts));
  // The gate bounds the bytes that it holds.
  parts->payloads = HostBufferPool::Create(std::numeric_limits<int64_t>::max(), config.receive().pool_bytes());
  parts->regions = MakeRegions(config.shared_memory(), parts->cpu_memory);
  parts->gate = std::make_unique<CallGate>(
      config.limits().in_flight_bytes(),
      ShareOf(config.limits().in_flight_bytes(), config.scheduling().tenant_in_flight_percent()));
  parts->unread_results = std::make_unique<TenantBytes>(
      TenantBytes::Names{.tenant_limit = "scheduling.tenant_unread_percent",
                         .tenant_bytes = "bytes of results that one tenant's clients have not read yet"},
      TenantBytes::kUnlimited, MostUnreadOf(config));
  AddConnections(config, parts.get());
  parts->rates = std::make_unique<RateLimiter>(RateOf(config));
  parts->metrics = std::make_unique<Metrics>(parts->devices);
  RETURN_IF_ERROR(AddIdentity(config, std::move(policy), parts.get()));
  RETURN_IF_ERROR(AddTracing(config, parts.get()));
  parts->segment_times = std::make_unique<SegmentTimes>();
  parts->collectables = {MakeMetricsPage(parts.get())};

  parts->profiler = std::make_unique<Profiler>();
  const ServerConfig::Compiler& compiler = config.compiler();
  parts->service_parts = {.version = std::string(Version()),
                          .registry = &parts->families->registry(),
                          .executors = parts->executors.get(),
                          .compile_pool = parts->compile_pool.get(),
                          .turns = parts->turns.get(),
                          .operators = parts->operators.get(),
                          .readers = parts->readers.get(),
                          .cache = parts->cache.get(),
                          .sessions = parts->sessions.get(),
                          .store = parts->store.get(),
                          .quarantine = parts->quarantine.get(),
                          .unserved = parts->unserved.get(),
                          .gate = parts->gate.get(),
                          .unread_results = parts->unread_results.get(),
                          .open_calls = parts->open_calls.get(),
                          .connections = ListensAtTcp(config) ? parts->connections.get() : nullptr,
                          .alarms = parts->alarms.get(),
                          .authenticator = parts->authenticator.get(),
                          .audit = parts->audit.get(),
                          .payloads = parts->payloads.get(),
                          .parallel_for = ThreadsOf(parts->pool.get()),
                          .regions = parts->regions.get(),
                          .rates = parts->rates.get(),
                          .metrics = parts->metrics.get(),
                          .segment_times = parts->segment_times.get(),
                          .log = parts->log.get(),
                          .recorder = parts->recorder.get(),
                          .tracer = parts->tracer.get(),
                          .profiler = parts->profiler.get(),
                          .fair_polling = &parts->fair_polling,
                          .graph_limits = GraphLimitsOf(config),
                          .default_deadline = absl::Milliseconds(config.limits().default_deadline_ms()),
                          .message_bytes = config.limits().message_bytes(),
                          .metadata_bytes = config.limits().metadata_bytes(),
                          .max_priority = config.scheduling().max_priority(),
                          .stream_requests = config.sessions().stream_requests(),
                          .stream_bytes = config.sessions().stream_bytes(),
                          .bindings = parts->bindings,
                          .disabled_passes = {compiler.disabled_passes().begin(), compiler.disabled_passes().end()},
                          .enabled_passes = {compiler.enabled_passes().begin(), compiler.enabled_passes().end()},
                          .programs_by_tenant = config.program_cache().by_tenant(),
                          .print_and_parse = config.testing().print_and_parse(),
                          .server_limits = ServerLimitsOf(config)};
  parts->compute_service = MakeComputeService(&parts->service_parts);
  parts->admin_service = MakeAdminService(&parts->service_parts);
  parts->channelz_service = MakeChannelzService(&parts->service_parts);
  parts->quarantine_watch = WatchQuarantine(parts->quarantine.get());
  return parts;
}

}  // namespace tensord::server
