#ifndef TENSORD_SERVER_START_CHECK_H_
#define TENSORD_SERVER_START_CHECK_H_

#include "absl/status/status.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

struct TlsMaterial;

// Checks a configuration as a start would, before anything is done: values, addresses, and the files and folders that
// it names. INVALID_ARGUMENT or FAILED_PRECONDITION with the setting and its value. Changes nothing, not in this
// process either: plugins are looked for, not loaded. `running` as in LoadTlsMaterial.
absl::Status CheckStart(const ServerConfig& config, const TlsMaterial* running = nullptr);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_START_CHECK_H_
