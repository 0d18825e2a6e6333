#ifndef TENSORD_SERVER_CONFIG_SETTING_OPTIONS_H_
#define TENSORD_SERVER_CONFIG_SETTING_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/descriptor.h"
#include "server/config/server_config.pb.h"
#include "server/config/server_limit.h"

namespace tensord::server {

// The options that server_config.proto gives to settings, read from there alone.

// Refuses a number outside its range and a text that may not be set. INVALID_ARGUMENT names the setting and says what
// it may be. Defaults are right.
absl::Status CheckOptions(const ServerConfig& config);

// Lists the settings that are limits, with their values, in the order of server_config.proto.
std::vector<ServerLimit> LimitSettings(const ServerConfig& config);

// Prints a number's range, "1 to 1024" or "at least 1"; empty for what is no number.
std::string PrintRange(const google::protobuf::FieldDescriptor& setting);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_SETTING_OPTIONS_H_
