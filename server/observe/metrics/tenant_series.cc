#include "server/observe/metrics/tenant_series.h"

#include <algorithm>

namespace tensord::server {

TenantSeries::TenantSeries(prometheus::Family<prometheus::Counter>& requests,
                           prometheus::Family<prometheus::Counter>& device_seconds)
    : requests_(requests), device_seconds_(device_seconds) {}

void TenantSeries::Count(absl::string_view tenant, absl::Duration run) {
  Series series;
  {
    MutexLock lock(&mutex_);
    series = FindLocked(tenant)->second;
  }
  series.requests->Increment();
  if (run > absl::ZeroDuration()) series.device_seconds->Increment(absl::ToDoubleSeconds(run));
}

std::map<std::string, double> TenantSeries::ByName(const std::map<std::string, double>& shares) {
  MutexLock lock(&mutex_);
  std::map<std::string, double> by_name;
  for (const auto& [tenant, share] : shares) {
    double& named = by_name[FindLocked(tenant)->first];
    named = std::max(named, share);
  }
  for (const auto& [tenant, series] : tenants_) by_name.try_emplace(tenant, 0);
  return by_name;
}

TenantSeries::Table::iterator TenantSeries::FindLocked(absl::string_view tenant) {
  auto found = tenants_.find(tenant);
  if (found != tenants_.end()) return found;
  if (tenants_.size() >= kMaxTenants) {
    tenant = kOthers;
    found = tenants_.find(tenant);
    if (found != tenants_.end()) return found;
  }
  return tenants_.emplace(tenant, Add(tenant)).first;
}

TenantSeries::Series TenantSeries::Add(absl::string_view tenant) {
  const prometheus::Labels labels = {{"tenant", std::string(tenant)}};
  return {&requests_.Add(labels), &device_seconds_.Add(labels)};
}

}  // namespace tensord::server
