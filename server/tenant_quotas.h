#ifndef TENSORD_SERVER_TENANT_QUOTAS_H_
#define TENSORD_SERVER_TENANT_QUOTAS_H_

#include "server/observe/metrics/collected_metrics.h"
#include "server/server_parts.h"

namespace tensord::server {

// Returns each tenant's used share of its quotas, under the names of their metrics.
CollectedMetrics::Quotas TenantQuotasOf(const ServerParts& parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TENANT_QUOTAS_H_
