#include <algorithm>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

constexpr int kFlagColumn = 26;

std::vector<Command> AllCommands() {
  std::vector<Command> commands = {RunCommand(),      EinsumCommand(),   CompileCommand(),        ExplainCommand(),
                                   ValidateCommand(), HealthCommand(),   InfoCommand(),           ProgramsCommand(),
                                   EvictCommand(),    SessionsCommand(), FlightRecorderCommand(), LogLevelCommand(),
                                   DrainCommand(),    ProfileCommand(),  ConnectionsCommand(),    TokenCommand(),
                                   BenchCommand(),    TopCommand(),      CallsCommand()};
  for (Command& command : commands) {
    command.flags.push_back({.name = "help", .help = "Show this text"});
  }
  return commands;
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

std::string GeneralHelp(const std::vector<Command>& commands) {
  std::string text =
      "tensordctl: evaluates tensor graphs on a tensord server.\n\n"
      "Usage: tensordctl COMMAND [ARGUMENT…]\n\nCommands:\n";
  for (const Command& command : commands) absl::StrAppendFormat(&text, "  %-15s %s\n", command.name, command.summary);
  absl::StrAppend(&text,
                  "\n\"tensordctl COMMAND --help\" explains one.\n"
                  "Exit status: 0 success, 1 refused or failed, 2 wrong command line.\n");
  return text;
}

// Returns "=FILE", or "[=FILE]" if that may be left out.
std::string ValueForm(const FlagSpec& flag) {
  if (flag.placeholder.empty()) return "";
  if (flag.placeholder.front() == '[') return absl::StrCat("[=", flag.placeholder.substr(1));
  return absl::StrCat("=", flag.placeholder);
}

std::string CommandHelp(const Command& command) {
  std::string text =
      absl::StrCat(command.summary, "\n\nUsage: tensordctl ", command.name, command.operands.empty() ? "" : " ",
                   command.operands, " [FLAG…]\n\n", command.details, command.details.empty() ? "" : "\n", "Flags:\n");
  for (const FlagSpec& flag : command.flags) {
    const std::string letter = flag.letter == 0 ? "" : absl::StrCat("-", std::string(1, flag.letter), ", ");
    const std::string form = absl::StrCat(letter, "--", flag.name, ValueForm(flag));
    absl::StrAppendFormat(&text, "  %-*s %s%s\n", kFlagColumn, form, flag.help,
                          flag.is_repeatable ? " (repeatable)" : "");
  }
  return text;
}

}  // namespace

int Dispatch(const std::vector<std::string>& words, Console& console) {
  const std::vector<Command> commands = AllCommands();
  if (words.empty()) return console.Usage("", "no command given");
  const auto find = [&commands](const std::string& name) {
    return std::find_if(commands.begin(), commands.end(), [&](const Command& command) { return command.name == name; });
  };
  if (IsHelp(words[0])) {
    const auto topic = words.size() > 1 ? find(words[1]) : commands.end();
    console.out() << (topic == commands.end() ? GeneralHelp(commands) : CommandHelp(*topic));
    return kExitOk;
  }
  const auto command = find(words[0]);
  if (command == commands.end()) return console.Usage("", absl::StrCat("unknown command: ", words[0]));
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  if (!rest.empty() && rest[0] == "-h") {
    console.out() << CommandHelp(*command);
    return kExitOk;
  }
  absl::StatusOr<Arguments> arguments = Arguments::Parse(command->flags, rest);
  if (!arguments.ok()) return console.Usage(command->name, arguments.status().message());
  if (arguments->Has("help")) {
    console.out() << CommandHelp(*command);
    return kExitOk;
  }
  if (command->operands.empty() && !arguments->positional().empty()) {
    return console.Usage(command->name, absl::StrCat("unexpected argument: ", arguments->positional().front()));
  }
  console.set_json(arguments->Has("json"));
  try {
    return command->run(*arguments, console);
  } catch (const std::bad_alloc&) {
    return console.Fail(absl::ResourceExhaustedError("there is not enough memory"));
  }
}

}  // namespace tensord::cli
