#ifndef TENSORD_CLIENTS_CLI_SHELL_COMMAND_H_
#define TENSORD_CLIENTS_CLI_SHELL_COMMAND_H_

#include <string>
#include <vector>

#include "clients/cli/shell/arguments.h"
#include "clients/cli/shell/console.h"

namespace tensord::cli {

// One command of tensordctl.
struct Command {
  std::string name;
  std::string operands;  // for the usage line, for example "GRAPH"; empty: it takes none
  std::string summary;   // one line
  std::string details;   // paragraphs for the command's own help, each a line
  std::vector<FlagSpec> flags;
  int (*run)(const Arguments& arguments, Console& console);
};

Command RunCommand();
Command EinsumCommand();
Command CompileCommand();
Command ExplainCommand();
Command ValidateCommand();
Command DifferentiateCommand();
Command HealthCommand();
Command InfoCommand();
Command TokenCommand();
Command BenchCommand();
Command TopCommand();
// Commands for operators.
Command ProgramsCommand();
Command EvictCommand();
Command CallsCommand();
Command SessionsCommand();
Command FlightRecorderCommand();
Command LogLevelCommand();
Command DrainCommand();
Command ProfileCommand();
Command ConnectionsCommand();

// Returns all commands with all of their flags, in the order of the help: the one table that the command line, the help
// and whatever is made of them read.
std::vector<Command> AllCommands();
// Returns the flags that stand in place of a command.
std::vector<FlagSpec> FlagsWithoutCommand();

// Runs "tensordctl WORDS…" and returns its exit status. A command's flags may stand before its name too.
int Dispatch(const std::vector<std::string>& words, Console& console);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_COMMAND_H_
