#ifndef TENSORD_SERVER_CONFIG_CONFIG_FILE_H_
#define TENSORD_SERVER_CONFIG_CONFIG_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/codec/limits.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// Configurations as people write them. Errors name the field and its allowed values.

// Merges a file's content into `config`: JSON where it begins with '{', else protobuf's text form. A field that does
// not exist is an error.
absl::Status MergeConfigText(absl::string_view text, ServerConfig* config);
// Fails with NOT_FOUND if it cannot be opened; an empty file is an error.
absl::Status MergeConfigFile(const std::string& path, ServerConfig* config);

// "limits.message_bytes=67108864". A repeated field is appended to.
absl::Status SetConfigField(absl::string_view assignment, ServerConfig* config);

// Tells whether callers must prove their identity, over TCP at least.
bool RequiresIdentity(const ServerConfig& config);

// Checks that the server can run with every value.
absl::Status ValidateConfig(const ServerConfig& config);

// Returns the limits on graphs and tensors: those of `config`, and defaults for those that it leaves out.
codec::GraphLimits GraphLimitsOf(const ServerConfig& config);

// Returns the configuration with every default filled in.
ServerConfig WithDefaults(const ServerConfig& config);

// The same in text form; MergeConfigText reads it back.
std::string PrintConfig(const ServerConfig& config);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_CONFIG_FILE_H_
