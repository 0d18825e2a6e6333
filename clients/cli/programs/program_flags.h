#ifndef TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_FLAGS_H_
#define TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/shell/arguments.h"
#include "tensord/client.h"

namespace tensord::cli {

// Returns the flags of all commands that compile a graph: --device, --order, --disable-pass, and those of a connection.
std::vector<FlagSpec> ProgramFlags();

struct ProgramFlagValues {
  std::string graph_path;
  client::ConnectOptions connection;
  client::ExecuteOptions options;
};

// Their values, and no graph. INVALID_ARGUMENT names the flag whose value cannot be read.
absl::StatusOr<ProgramFlagValues> ParseProgramOptions(const Arguments& arguments);

// The same of a command that takes a graph file. INVALID_ARGUMENT also if there is not exactly one.
absl::StatusOr<ProgramFlagValues> ParseProgramFlags(const Arguments& arguments);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_PROGRAMS_PROGRAM_FLAGS_H_
