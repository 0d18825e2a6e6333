#ifndef TENSORD_CLIENTS_CLI_OPERATORS_ADMIN_CONNECTION_H_
#define TENSORD_CLIENTS_CLI_OPERATORS_ADMIN_CONNECTION_H_

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "clients/cli/shell/arguments.h"
#include "clients/cli/shell/connection.h"
#include "clients/cli/shell/console.h"
#include "tensord/admin_client.h"

namespace tensord::cli {

// Returns the flags of the commands for operators: --admin in place of --target, and the others of a connection.
// `deadline` is the command's own.
std::vector<FlagSpec> AdminFlags(absl::Duration deadline = kLookDeadline);

// Connects by the flags and does the command's work. Returns the exit status of the work, or of an earlier failure.
int WithAdmin(absl::string_view command, const Arguments& arguments, Console& console,
              const std::function<int(client::AdminClient&)>& work, absl::Duration deadline = kLookDeadline);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_OPERATORS_ADMIN_CONNECTION_H_
