#ifndef TENSORD_SERVER_RELOADABLE_PARTS_H_
#define TENSORD_SERVER_RELOADABLE_PARTS_H_

#include <string>
#include <vector>

#include "server/config/reloader.h"
#include "server/server_parts.h"
#include "server/shared_memory/memory_broker.h"

namespace tensord::server {

// Returns everything of a running server that takes new settings or new content of files: the one list of changes that
// need no restart. The parts and the broker, which may be null, must outlive the result.
std::vector<ReloadablePart> ReloadablePartsOf(ServerParts* parts, MemoryBroker* broker);

// Returns the files whose content those parts take, as the configuration names them.
std::vector<std::string> WatchedFiles(const ServerConfig& config);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_RELOADABLE_PARTS_H_
