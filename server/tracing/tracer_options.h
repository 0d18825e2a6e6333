#ifndef TENSORD_SERVER_TRACING_TRACER_OPTIONS_H_
#define TENSORD_SERVER_TRACING_TRACER_OPTIONS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/config/server_config.pb.h"
#include "server/tracing/tracer.h"

namespace tensord::server {

// Parses "name: value" a line, # for comments. INVALID_ARGUMENT, with the line, for headers that no call may have as
// metadata.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseHeaders(absl::string_view text);

// Loads the settings `tracing`, with the files that they name. INVALID_ARGUMENT if one of them cannot be used, or if
// headers would leave this machine without encryption.
absl::StatusOr<Tracer::Options> LoadTracerOptions(const ServerConfig::Tracing& config, absl::string_view version);

}  // namespace tensord::server

#endif  // TENSORD_SERVER_TRACING_TRACER_OPTIONS_H_
