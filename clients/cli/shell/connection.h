#ifndef TENSORD_CLIENTS_CLI_SHELL_CONNECTION_H_
#define TENSORD_CLIENTS_CLI_SHELL_CONNECTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/shell/arguments.h"
#include "tensord/client.h"

namespace tensord::cli {

// Deadlines of calls without --deadline. A server may answer pings and no call, so each command has one.
inline constexpr absl::Duration kLookDeadline = absl::Seconds(30);  // of what a server answers from memory
inline constexpr absl::Duration kWorkDeadline = absl::Hours(1);     // of runs and compilations

// Returns the flags of every command that talks to a server: --target, --deadline, its access to the server, and
// --json. `deadline` is the command's own, which the help names.
std::vector<FlagSpec> ConnectionFlags(absl::Duration deadline);

// Reads the flags and the environment. Without --deadline the calls have `deadline`. INVALID_ARGUMENT names the flag or
// file that cannot be read.
absl::StatusOr<client::ConnectOptions> ParseConnection(const Arguments& arguments, absl::Duration deadline);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_CONNECTION_H_
