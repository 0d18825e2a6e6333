#include "server/reloadable_parts.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "server/identity/identity_policy.h"
#include "server/identity/tls_material.h"

namespace tensord::server {
namespace {

using Commit = ReloadablePart::Commit;

// A part that only takes values, which ValidateConfig has looked at.
ReloadablePart TakesValues(std::vector<std::string> settings, std::function<void(const ServerConfig&)> take) {
  return {std::move(settings),
          [take = std::move(take)](const ServerConfig& config) -> absl::StatusOr<Commit> {
            return [take, config] { take(config); };
          },
          /*reads_files=*/false};
}

void TakeScheduling(const ServerConfig& config, ServerParts* parts) {
  for (const auto& executor : parts->executors->all()) executor->SetBounds(CpuBoundsOf(config));
  parts->rates->SetOptions(RateOf(config));
  parts->service_parts.max_priority = config.scheduling().max_priority();
}

void TakeLimits(const ServerConfig& config, ServerParts* parts) {
  const int64_t in_flight_bytes = config.limits().in_flight_bytes();
  parts->gate->SetMaxBytes(in_flight_bytes, ShareOf(in_flight_bytes, config.scheduling().tenant_in_flight_percent()));
  parts->service_parts.default_deadline = absl::Milliseconds(config.limits().default_deadline_ms());
  const std::vector<ServerLimit> limits = ServerLimitsOf(config);
  for (size_t i = 0; i < limits.size(); ++i) parts->service_parts.server_limits[i].value = limits[i].value;
}

absl::StatusOr<Commit> PrepareIdentity(const ServerConfig& config, ServerParts* parts) {
  ASSIGN_OR_RETURN(IdentityPolicy policy, LoadIdentityPolicy(config));
  // A file that lost its end, or a flag that was dropped, must not open the server to everybody.
  if (parts->authenticator->policy()->required && !policy.required && config.identity().required() != "off") {
    return absl::InvalidArgumentError(
        "callers would not have to say who they are any more, because identity.file is no longer set; set it again, or "
        "identity.required to off");
  }
  return [parts, policy = std::move(policy)] { parts->authenticator->Replace(policy); };
}

absl::StatusOr<Commit> PrepareTls(const ServerConfig& config, ServerParts* parts) {
  if (parts->tls == nullptr) return Commit([] {});
  const std::shared_ptr<const TlsMaterial> running = parts->tls->material();
  ASSIGN_OR_RETURN(TlsMaterial material, LoadTlsMaterial(config.tls(), absl::Now(), running.get()));
  if (material == *running) return Commit([] {});
  return [parts, material = std::move(material)] {
    ShowExpiry(material, parts->control_metrics.get());
    parts->tls->Replace(material);
    parts->log->Event(LogLevel::kInfo, "certificate", "new connections get the new certificate");
  };
}

}  // namespace

std::vector<ReloadablePart> ReloadablePartsOf(ServerParts* parts) {
  return {
      TakesValues(
          {"log.level"},
          [parts](const ServerConfig& config) { parts->log->SetLevel(LogLevelFromName(config.log().level())); }),
      TakesValues({"log.requests"},
                  [parts](const ServerConfig& config) { parts->log->SetRequests(config.log().requests()); }),
      TakesValues({"tracing.sample_ratio"},
                  [parts](const ServerConfig& config) {
                    if (parts->tracer != nullptr) parts->tracer->SetSampleRatio(config.tracing().sample_ratio());
                  }),
      TakesValues({"limits.in_flight_bytes", "limits.default_deadline_ms", "scheduling.tenant_in_flight_percent",
                   "scheduling.tenant_requests_per_second"},
                  [parts](const ServerConfig& config) { TakeLimits(config, parts); }),
      TakesValues({"scheduling.max_priority", "scheduling.ageing_ms", "scheduling.tenant_queue_percent",
                   "scheduling.tenant_requests_per_second", "scheduling.tenant_burst", "scheduling.max_wait_ms"},
                  [parts](const ServerConfig& config) { TakeScheduling(config, parts); }),
      // The daemon asks for them when it stops.
      TakesValues({"drain.grace_ms", "drain.timeout_ms"}, [](const ServerConfig&) {}),
      {{"identity.file", "identity.required", "identity.trust_unix_sockets"},
       [parts](const ServerConfig& config) { return PrepareIdentity(config, parts); },
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
