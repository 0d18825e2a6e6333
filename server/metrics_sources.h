#ifndef TENSORD_SERVER_METRICS_SOURCES_H_
#define TENSORD_SERVER_METRICS_SOURCES_H_

#include <prometheus/collectable.h>

#include <memory>

#include "server/server_parts.h"

namespace tensord::server {

// Makes the page of all metrics, which reads the parts whenever somebody looks: they must outlive it.
std::shared_ptr<prometheus::Collectable> MakeMetricsPage(ServerParts* parts);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_METRICS_SOURCES_H_
