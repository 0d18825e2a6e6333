#ifndef TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_
#define TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// Returns the paths of the settings whose values differ, "limits.rank", in the order of the .proto file. An unset value
// counts as its default.
std::vector<std::string> ChangedSettings(const ServerConfig& before, const ServerConfig& after);

using SettingVisitor = absl::FunctionRef<void(const std::string& path, const google::protobuf::Message& message,
                                              const google::protobuf::FieldDescriptor& field)>;

// Shows all settings in that order, each with its path and the message that it is a field of.
void VisitSettings(const ServerConfig& config, SettingVisitor visit);

// Returns the paths of all settings, in that order.
std::vector<std::string> AllSettings();

// Tells whether server_config.proto lets a running server reload the setting.
bool Reloads(absl::string_view path);

// Gives `to` the value that `from` has at the path; false if there is no such setting.
bool CopySetting(absl::string_view path, const ServerConfig& from, ServerConfig* to);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_FLAT_SETTINGS_H_
