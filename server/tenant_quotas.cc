#include "server/tenant_quotas.h"

#include <algorithm>

#include "engine/base/shares.h"
#include "engine/base/steady_time.h"

namespace tensord::server {

CollectedMetrics::Quotas TenantQuotasOf(const ServerParts& parts) {
  CollectedMetrics::Quotas quotas;
  const auto add = [&](const char* resource, const Shares& shares) {
    if (!shares.has_value()) return;
    for (const auto& [tenant, share] : parts.metrics->tenants().ByName(*shares)) {
      double& most = quotas[resource][tenant];
      most = std::max(most, share);
    }
  };
  add("in_flight_bytes", parts.gate->bytes().TenantShares());
  add("unread_bytes", parts.unread_results->TenantShares());
  add("requests", parts.rates->TenantShares(SteadyNow()));
  add("resident_bytes", parts.sessions->TenantByteShares());
  add("sessions", parts.sessions->TenantSessionShares());
  for (const auto& executor : parts.executors->all()) add("queue", executor->TenantShares());
  if (parts.regions != nullptr) {
    add("shared_bytes", parts.regions->TenantByteShares());
    add("shared_regions", parts.regions->TenantRegionShares());
  }
  return quotas;
}

}  // namespace tensord::server
