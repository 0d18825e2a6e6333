#include "server/observe/tenant_series.h"

namespace tensord::server {

TenantSeries::TenantSeries(prometheus::Family<prometheus::Counter>& requests,
                           prometheus::Family<prometheus::Counter>& device_seconds)
    : requests_(requests), device_seconds_(device_seconds) {}

void TenantSeries::Count(absl::string_view tenant, absl::Duration run) {
  const Series series = Find(tenant);
  series.requests->Increment();
  if (run > absl::ZeroDuration()) series.device_seconds->Increment(absl::ToDoubleSeconds(run));
}

TenantSeries::Series TenantSeries::Find(absl::string_view tenant) {
  MutexLock lock(&mutex_);
  auto found = tenants_.find(tenant);
  if (found != tenants_.end()) return found->second;
  if (tenants_.size() >= kMaxTenants) {
    tenant = kOthers;
    found = tenants_.find(tenant);
    if (found != tenants_.end()) return found->second;
  }
  return tenants_.emplace(tenant, Add(tenant)).first->second;
}

TenantSeries::Series TenantSeries::Add(absl::string_view tenant) {
  const prometheus::Labels labels = {{"tenant", std::string(tenant)}};
  return {&requests_.Add(labels), &device_seconds_.Add(labels)};
}

}  // namespace tensord::server
