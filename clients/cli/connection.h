#ifndef TENSORD_CLIENTS_CLI_CONNECTION_H_
#define TENSORD_CLIENTS_CLI_CONNECTION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "clients/cli/arguments.h"
#include "clients/cpp/client.h"

namespace tensord::cli {

// --target, --deadline and what the server asks for to let a client in, which every command that talks to a server
// takes, and --json.
std::vector<FlagSpec> ConnectionFlags();

// Of the flags and the environment. INVALID_ARGUMENT names the flag or file that cannot be read.
absl::StatusOr<client::ConnectOptions> ParseConnection(const Arguments& arguments);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_CONNECTION_H_
