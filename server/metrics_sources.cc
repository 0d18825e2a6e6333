#include "server/metrics_sources.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proto/codec/limits.h"
#include "server/observe/metrics/collected_metrics.h"
#include "server/observe/metrics/metrics_page.h"
#include "server/observe/metrics/process_metrics.h"
#include "server/observe/metrics/segment_metrics.h"
#include "server/tenant_quotas.h"
#include "server/version.h"

namespace tensord::server {
namespace {

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

// Returns the limits under the names that refusals give them.
std::vector<std::pair<std::string, int64_t>> LimitsOf(const ServiceParts& parts) {
  std::vector<std::pair<std::string, int64_t>> limits;
  for (const ServerLimit& limit : parts.admission.server_limits) limits.emplace_back(limit.name, limit.value);
  const codec::GraphLimits graph_limits = parts.admission.graph_limits.now();
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

}  // namespace

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
      .fft_tables = [devices = parts->devices.get()] { return devices->fft_tables(); },
      .cuda = [devices = parts->devices.get()] { return devices->cuda(); },
      .resident = [sessions = parts->sessions.get()] { return ResidentOf(*sessions); },
      .shared = [parts] { return SharedOf(parts->regions.get(), *parts->broker_refusals); },
      .quotas = [parts] { return TenantQuotasOf(*parts); },
      .limits = [service_parts = &parts->service_parts] { return LimitsOf(*service_parts); }};
  return std::make_shared<MetricsPage>(std::vector<std::shared_ptr<prometheus::Collectable>>{
      parts->metrics->registry(), std::make_shared<CollectedMetrics>(std::move(sources)),
      std::make_shared<SegmentMetrics>(parts->segment_times.get()), std::make_shared<ProcessMetrics>()});
}

}  // namespace tensord::server
