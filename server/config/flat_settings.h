#ifndef TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_
#define TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// The paths of the settings whose values differ, "limits.rank", in the order of the .proto file. What is not set counts
// as its default.
std::vector<std::string> ChangedSettings(const ServerConfig& before, const ServerConfig& after);

// The paths of all settings, in that order.
std::vector<std::string> AllSettings();

// Whether server_config.proto says of the setting that a running server takes it again.
bool Reloads(absl::string_view path);

// Gives `to` the value that `from` has at the path; false where there is no such setting.
bool CopySetting(absl::string_view path, const ServerConfig& from, ServerConfig* to);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_
