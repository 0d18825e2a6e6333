#ifndef TENSORD_SERVER_PART_SETTINGS_H_
#define TENSORD_SERVER_PART_SETTINGS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/runtime/compile/compile_pool.h"
#include "engine/runtime/compile/turn_pool.h"
#include "engine/runtime/devices/device_executor.h"
#include "server/admission/rate_limiter.h"
#include "server/config/server_config.pb.h"
#include "server/config/server_limit.h"
#include "server/connections/connection_places.h"
#include "server/identity/identity_policy.h"
#include "server/sessions/session_store.h"
#include "server/shared_memory/region_store.h"

namespace tensord::server {

// Returns the configuration with the settings left to the server decided, by the machine and the callers. Lets the
// process open as many descriptors as it needs, as far as the system allows.
ServerConfig Decided(const ServerConfig& config, const IdentityPolicy& policy);

// Lists the limits beside those on graphs, as GetServerInfo tells them, of a configuration that is decided; always the
// same ones in the same order.
std::vector<ServerLimit> ServerLimitsOf(const ServerConfig& config);

// Returns that part of a limit, at least one of it; no bound if it is all.
int64_t ShareOf(int64_t all, int64_t percent);

// Return the bounds of a decided configuration in the form that their enforcers take.
DeviceExecutor::Bounds DeviceBoundsOf(const ServerConfig& config, absl::string_view kind);  // of each device of a kind
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

#endif  // TENSORD_SERVER_PART_SETTINGS_H_
