#ifndef TENSORD_SERVER_TENANT_QUOTAS_H_
#define TENSORD_SERVER_TENANT_QUOTAS_H_

#include "server/compose.h"
#include "server/observe/metrics/collected_metrics.h"

namespace tensord::server {

// How much of what each may have tenants have now, under the names that their metrics have.
CollectedMetrics::Quotas TenantQuotasOf(const ServerParts& parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TENANT_QUOTAS_H_
