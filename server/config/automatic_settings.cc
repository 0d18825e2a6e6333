#include "server/config/automatic_settings.h"

#include <algorithm>

namespace tensord::server {
namespace {

// The tenths of tensors' memory that plans may use. The rest is for sizes that no plan knows: results on their way to
// clients, sizes that runs decide.
constexpr int64_t kPlannedTenths = 9;
constexpr int32_t kPercentOfOneOfSeveral = 50;
// Connections to /metrics, and files: those of the log, of programs, of plugins and certificates, of gRPC's own.
constexpr int64_t kDescriptorsForMetrics = 64;
constexpr int64_t kDescriptorsForFiles = 128;

}  // namespace

int64_t DescriptorsBesideConnections(const ServerConfig& config) {
  const int64_t shared = config.shared_memory().listen().empty() ? 0 : config.shared_memory().connections();
  return kDescriptorsForFiles + kDescriptorsForMetrics + kMostAdminConnections + shared;
}

ServerConfig WithAutomaticSettings(const ServerConfig& config, const Surroundings& surroundings) {
  ServerConfig decided = config;
  if (config.cpu().memory_bytes() < 0) {
    decided.mutable_cpu()->set_memory_bytes(std::max<int64_t>(1, surroundings.tensor_bytes / 10 * kPlannedTenths));
  }
  const int64_t left = surroundings.descriptors - DescriptorsBesideConnections(config);
  decided.mutable_limits()->set_connections(std::max<int64_t>(1, std::min(config.limits().connections(), left)));
  if (config.limits().connections_per_address() < 0) {
    decided.mutable_limits()->set_connections_per_address(std::max<int64_t>(1, decided.limits().connections() / 2));
  }
  const int32_t percent = surroundings.has_tenants ? kPercentOfOneOfSeveral : 100;
  const auto part_of = [percent](int64_t all) { return all / 100 * percent + all % 100 * percent / 100; };
  if (config.scheduling().tenant_queue_percent() == 0) decided.mutable_scheduling()->set_tenant_queue_percent(percent);
  if (config.scheduling().tenant_in_flight_percent() == 0) {
    decided.mutable_scheduling()->set_tenant_in_flight_percent(percent);
  }
  if (config.scheduling().tenant_unread_percent() == 0) {
    decided.mutable_scheduling()->set_tenant_unread_percent(percent);
  }
  if (config.sessions().tenant_bytes() < 0) {
    decided.mutable_sessions()->set_tenant_bytes(part_of(config.sessions().device_bytes()));
  }
  // It counts with the tensors.
  decided.mutable_shared_memory()->set_bytes(std::min(config.shared_memory().bytes(), surroundings.tensor_bytes));
  if (config.shared_memory().tenant_bytes() < 0) {
    decided.mutable_shared_memory()->set_tenant_bytes(part_of(decided.shared_memory().bytes()));
  }
  return decided;
}

}  // namespace tensord::server
