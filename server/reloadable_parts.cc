#include "server/reloadable_parts.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "server/config/config_file.h"
#include "server/identity/identity_policy.h"
#include "server/identity/tls_material.h"
#include "server/part_settings.h"

namespace tensord::server {
namespace {

using Commit = ReloadablePart::Commit;

// Makes a part that only takes values, which ValidateConfig has checked.
ReloadablePart TakesValues(std::vector<std::string> settings, std::function<void(const ServerConfig&)> take) {
  return {std::move(settings),
          [take = std::move(take)](const ServerConfig& config) -> absl::StatusOr<Commit> {
            return [take, config] { take(config); };
          },
          /*reads_files=*/false};
}

void TakeMemory(const ServerConfig& config, ServerParts* parts, MemoryBroker* broker) {
  parts->devices->memory()->SetKeepBytes(config.cpu().pool_bytes());
  parts->payloads->SetKeepBytes(config.receive().pool_bytes());
  parts->readers->SetBounds(ReaderBoundsOf(config));
  parts->sessions->SetLimits(SessionLimitsOf(config.sessions()));
  const ServerConfig::SharedMemory& shared = config.shared_memory();
  if (parts->regions != nullptr) parts->regions->SetLimits(RegionLimitsOf(shared));
  if (broker != nullptr) broker->SetAllowed({shared.uids().begin(), shared.uids().end()}, shared.connections());
}

void TakePrograms(const ServerConfig& config, ServerParts* parts) {
  const ServerConfig::ProgramCache& cache = config.program_cache();
  parts->cache->SetBounds(cache.bytes(), absl::Milliseconds(cache.negative_ms()));
  if (parts->store != nullptr) parts->store->SetMaxBytes(cache.disk_bytes());
  parts->compile_pool->SetBounds(CompileBoundsOf(config));
}

void TakeCalls(const ServerConfig& config, ServiceParts* parts) {
  parts->admission.graph_limits.Set(GraphLimitsOf(config));
  parts->admission.default_deadline = absl::Milliseconds(config.limits().default_deadline_ms());
  parts->admission.metadata_bytes = config.limits().metadata_bytes();
  parts->devices.max_priority = config.scheduling().max_priority();
  parts->admission.stream_requests = config.sessions().stream_requests();
  parts->admission.stream_bytes = config.sessions().stream_bytes();
  const std::vector<ServerLimit> limits = ServerLimitsOf(config);
  for (size_t i = 0; i < limits.size(); ++i) parts->admission.server_limits[i].value = limits[i].value;
}

// Every bound that nobody but the configuration sets. Some are decided by who may call.
void TakeBounds(const ServerConfig& given, ServerParts* parts, MemoryBroker* broker) {
  const ServerConfig config = parts->devices->Decided(Decided(given, *parts->authenticator->policy()));
  for (const auto& executor : parts->executors->all()) {
    executor->SetBounds(DeviceBoundsOf(config, executor->backend()->kind()));
  }
  parts->rates->SetOptions(RateOf(config));
  const int64_t in_flight_bytes = config.limits().in_flight_bytes();
  parts->gate->bytes().SetMost(in_flight_bytes,
                               ShareOf(in_flight_bytes, config.scheduling().tenant_in_flight_percent()));
  parts->unread_results->SetMost(TenantBytes::kUnlimited, MostUnreadOf(config));
  parts->connections->SetBounds(ConnectionPlacesOf(config));
  TakeMemory(config, parts, broker);
  TakePrograms(config, parts);
  TakeCalls(config, &parts->service_parts);
  parts->recorder->SetSlow(absl::Milliseconds(config.flight_recorder().slow_ms()));
}

absl::StatusOr<Commit> PrepareIdentity(const ServerConfig& config, ServerParts* parts, MemoryBroker* broker) {
  ASSIGN_OR_RETURN(IdentityPolicy policy, LoadIdentityPolicy(config));
  // A file that lost its end, or a flag that was dropped, must not open the server to everybody.
  if (parts->authenticator->policy()->required && !policy.required && config.identity().required() != "off") {
    return absl::InvalidArgumentError(
        "callers would not have to say who they are any more, because identity.file is no longer set; set it again, or "
        "identity.required to off");
  }
  return [=, policy = std::move(policy)] {
    parts->authenticator->Replace(policy);
    TakeBounds(config, parts, broker);
  };
}

absl::StatusOr<Commit> PrepareTls(const ServerConfig& config, ServerParts* parts) {
  if (parts->tls == nullptr) return Commit([] {});
  const std::shared_ptr<const TlsMaterial> running = parts->tls->material();
  ASSIGN_OR_RETURN(TlsMaterial material, LoadTlsMaterial(config.tls(), absl::Now(), running.get()));
  if (material == *running) return Commit([] {});
  return [parts, material = std::move(material)] {
    ShowExpiry(material, parts->control_metrics.get());
    parts->certificate_lines->Watch(material);
    parts->tls->Replace(material);
    parts->log->Event(LogLevel::kInfo, "certificate", "new connections get the new certificate");
  };
}

}  // namespace

std::vector<ReloadablePart> ReloadablePartsOf(ServerParts* parts, MemoryBroker* broker) {
  return {
      // Apart from each other and from the rest, because an operator may have set it by hand.
      TakesValues(
          {"log.level"},
          [parts](const ServerConfig& config) { parts->log->SetLevel(LogLevelFromName(config.log().level())); }),
      TakesValues({"log.requests"},
                  [parts](const ServerConfig& config) { parts->log->SetRequests(config.log().requests()); }),
      TakesValues({"tracing"},
                  [parts](const ServerConfig& config) {
                    if (parts->tracer != nullptr) parts->tracer->SetSampleRatio(config.tracing().sample_ratio());
                  }),
      TakesValues({"limits", "cpu", "cuda", "scheduling", "compiler", "program_cache", "receive", "sessions",
                   "shared_memory", "flight_recorder"},
                  [parts, broker](const ServerConfig& config) { TakeBounds(config, parts, broker); }),
      // The daemon asks for them when it stops.
      TakesValues({"drain"}, [](const ServerConfig&) {}),
      {{"identity"},
       [parts, broker](const ServerConfig& config) { return PrepareIdentity(config, parts, broker); },
       /*reads_files=*/true},
      // The content of its files; their names and which of them there are belong to the listeners.
      {{}, [parts](const ServerConfig& config) { return PrepareTls(config, parts); }, /*reads_files=*/true},
  };
}

std::vector<std::string> WatchedFiles(const ServerConfig& config) {
  std::vector<std::string> files;
  for (const std::string& file :
       {config.identity().file(), config.tls().certificate(), config.tls().key(), config.tls().client_ca()}) {
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

}  // namespace tensord::server
