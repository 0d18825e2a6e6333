#ifndef TENSORD_SERVER_CONFIGURED_BOUNDS_H_
#define TENSORD_SERVER_CONFIGURED_BOUNDS_H_

#include <cstdint>

#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/turn_pool.h"
#include "engine/runtime/devices/device_executor.h"
#include "server/admission/rate_limiter.h"
#include "server/config/server_config.pb.h"
#include "server/connections/connection_places.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/region_store.h"

namespace tensord::server {

// Returns that part of a limit, at least one of it; no bound if it is all.
int64_t ShareOf(int64_t all, int64_t percent);

// Return the bounds of a decided configuration in the form that their enforcers take.
DeviceExecutor::Bounds CpuBoundsOf(const ServerConfig& config);
CompilePool::Bounds CompileBoundsOf(const ServerConfig& config);
TurnPool::Bounds ReaderBoundsOf(const ServerConfig& config);
// Returns the bound of bytes that a tenant's clients may leave unread.
int64_t MostUnreadOf(const ServerConfig& config);
RateLimiter::Options RateOf(const ServerConfig& config);
SessionStore::Limits SessionLimitsOf(const ServerConfig::Sessions& config);
RegionStore::Limits RegionLimitsOf(const ServerConfig::SharedMemory& config);
ConnectionPlaces::Bounds ConnectionPlacesOf(const ServerConfig& config);

bool ListensAtTcp(const ServerConfig& config);

// Returns the bound of metadata beyond which gRPC ends the connection, with all calls on it. A call's own bound,
// limits.metadata_bytes, lies well below: it is refused alone.
int64_t MostMetadataOfAConnection(int64_t metadata_bytes);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIGURED_BOUNDS_H_
