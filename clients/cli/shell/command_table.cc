#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

FlagSpec HelpFlag() { return {.name = "help", .help = "Show this text", .letter = 'h'}; }

}  // namespace

std::vector<Command> AllCommands() {
  std::vector<Command> commands = {
      RunCommand(),           EinsumCommand(),         CompileCommand(),  ExplainCommand(),  ValidateCommand(),
      DifferentiateCommand(), HealthCommand(),         InfoCommand(),     ProgramsCommand(), EvictCommand(),
      SessionsCommand(),      FlightRecorderCommand(), LogLevelCommand(), DrainCommand(),    ProfileCommand(),
      ConnectionsCommand(),   TokenCommand(),          BenchCommand(),    TopCommand(),      CallsCommand()};
  for (Command& command : commands) command.flags.push_back(HelpFlag());
  return commands;
}

std::vector<FlagSpec> FlagsWithoutCommand() {
  return {HelpFlag(), {.name = "version", .help = "Show the version of this program"}};
}

}  // namespace tensord::cli
