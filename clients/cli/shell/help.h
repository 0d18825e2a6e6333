#ifndef TENSORD_CLIENTS_CLI_SHELL_HELP_H_
#define TENSORD_CLIENTS_CLI_SHELL_HELP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "clients/cli/shell/command.h"

namespace tensord::cli {

// Returns the list of commands, in lines of at most `columns` if words allow it, and never more than 100.
std::string GeneralHelp(const std::vector<Command>& commands, size_t columns);

// Returns the usage, details and flags of a command, likewise.
std::string CommandHelp(const Command& command, size_t columns);

// Returns a flag as help shows it: "-o, --output=FILE", "--json[=FILE]".
std::string FlagForm(const FlagSpec& flag);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_HELP_H_
