#ifndef TENSORD_SERVER_COMPOSE_H_
#define TENSORD_SERVER_COMPOSE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "server/config/server_config.pb.h"
#include "server/server_parts.h"

namespace tensord::server {

// Builds the parts, for a configuration that ValidateConfig accepts: every pool of the process is named here and
// nowhere else. Keeps the process to cpu.isa. `others` as in Devices::Create. INVALID_ARGUMENT where a plugin, the file
// of callers or a certificate cannot be used; UNAVAILABLE where a device is not there.
absl::StatusOr<std::unique_ptr<ServerParts>> Compose(const ServerConfig& config, const OtherBackends& others = {});

}  // namespace tensord::server

#endif  // TENSORD_SERVER_COMPOSE_H_
