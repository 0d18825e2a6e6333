#ifndef TENSORD_SERVER_CONFIG_COMMAND_LINE_H_
#define TENSORD_SERVER_CONFIG_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/config/server_config.pb.h"

namespace tensord::server {

// The request of a command line. Flags win over the file of --config, whatever their order.
struct CommandLine {
  enum class Action { kRun, kCheckConfig, kPrintDefaultConfig, kVersion, kHelp };

  Action action = Action::kRun;
  ServerConfig config;
};

// Parses the arguments after the program's name; --name=value and --name value are the same. An unknown flag is an
// error, and so is a configuration that the server could not run with.
absl::StatusOr<CommandLine> ParseCommandLine(absl::Span<const std::string> arguments);

// Returns the files that --config names among such arguments; none if the flags are wrong.
std::vector<std::string> ConfigFilesOf(absl::Span<const std::string> arguments);

// Returns the text of --help.
std::string HelpText();

}  // namespace tensord::server

#endif  // TENSORD_SERVER_CONFIG_COMMAND_LINE_H_
