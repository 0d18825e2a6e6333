#ifndef TENSORD_SERVER_START_CHECK_H_
#define TENSORD_SERVER_START_CHECK_H_

#include "absl/status/status.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

struct TlsMaterial;

// What a start would refuse of a configuration before it does anything: values, addresses, and what the files and
// folders are that it names. INVALID_ARGUMENT or FAILED_PRECONDITION with the setting and its value. Changes nothing,
// in this process too: plugins are looked for, not loaded. `running` as of LoadTlsMaterial.
absl::Status CheckStart(const ServerConfig& config, const TlsMaterial* running = nullptr);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_START_CHECK_H_
