#ifndef TENSORD_SERVER_CONFIG_SETTING_COMMENTS_H_
#define TENSORD_SERVER_CONFIG_SETTING_COMMENTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::server {

// Returns the comments of a .proto file, as lines without their slashes, by the declarations after them: "Limits.rank"
// for a field of the outermost message's message Limits, "limits" for a field of its own, "Limits" for the message
// itself. Knows as much of the language as server_config.proto uses: one outermost message, and comments of their own
// lines.
std::map<std::string, std::vector<std::string>> CommentsOf(absl::string_view proto);

// Returns all settings with their defaults, in text form, each after its comment in server_config.proto and with its
// range and a mark if SIGHUP changes it; MergeConfigText reads it back.
std::string PrintDefaultConfig();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_SETTING_COMMENTS_H_
