#include <algorithm>
#include <new>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/help.h"
#include "proto/command_line/nearest_name.h"

namespace tensord::cli {
namespace {

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

// Returns the flag that the word gives to any command; null if none has it.
const FlagSpec* FindFlag(const std::string& word, const std::vector<Command>& commands) {
  const std::string given = word.substr(0, word.find('='));
  for (const Command& command : commands) {
    for (const FlagSpec& flag : command.flags) {
      if (given == absl::StrCat("--", flag.name)) return &flag;
      if (flag.letter != 0 && given == absl::StrCat("-", std::string(1, flag.letter))) return &flag;
    }
  }
  return nullptr;
}

// Tells whether the next word is the flag's value. All commands with a flag of that name agree on it.
bool TakesNextWord(const std::string& word, const std::vector<Command>& commands) {
  if (absl::StrContains(word, '=')) return false;
  const FlagSpec* const flag = FindFlag(word, commands);
  return flag != nullptr && !flag->placeholder.empty() && flag->placeholder.front() != '[';
}

// Takes the first word that is neither a flag nor the value of one out of the words; none if all are flags.
std::optional<std::string> TakeName(const std::vector<Command>& commands, std::vector<std::string>* words) {
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string word = (*words)[i];
    if (absl::StartsWith(word, "-")) {
      if (TakesNextWord(word, commands)) ++i;
      continue;
    }
    words->erase(words->begin() + static_cast<ptrdiff_t>(i));
    return word;
  }
  return std::nullopt;
}

// The command line without a command: help, the version, or a fault.
int WithoutCommand(const std::vector<std::string>& words, const std::vector<Command>& commands, Console& console) {
  const absl::StatusOr<Arguments> arguments = Arguments::Parse(FlagsWithoutCommand(), words);
  if (!arguments.ok()) {
    const bool lacks_command = FindFlag(words.front(), commands) != nullptr;
    return console.Usage("", lacks_command ? "no command given" : arguments.status().message());
  }
  if (arguments->Has("help")) {
    console.out() << GeneralHelp(commands, console.columns());
    return kExitOk;
  }
  if (arguments->Has("version")) {
    console.out() << "tensordctl " << TENSORD_VERSION << "\n";
    return kExitOk;
  }
  return console.Usage("", "no command given");
}

int Run(const Command& command, const std::vector<std::string>& words, Console& console) {
  const absl::StatusOr<Arguments> arguments = Arguments::Parse(command.flags, words);
  if (!arguments.ok()) return console.Usage(command.name, arguments.status().message());
  if (arguments->Has("help")) {
    console.out() << CommandHelp(command, console.columns());
    return kExitOk;
  }
  if (command.operands.empty() && !arguments->positional().empty()) {
    return console.Usage(command.name, absl::StrCat("unexpected argument: ", arguments->positional().front()));
  }
  console.set_json(arguments->Has("json"));
  try {
    return command.run(*arguments, console);
  } catch (const std::bad_alloc&) {
    return console.Fail(absl::ResourceExhaustedError("there is not enough memory"));
  }
}

}  // namespace

int Dispatch(const std::vector<std::string>& words, Console& console) {
  const std::vector<Command> commands = AllCommands();
  std::vector<std::string> rest = words;
  // "help COMMAND", and "--help COMMAND" for the same.
  const bool wants_help = !rest.empty() && IsHelp(rest.front());
  if (wants_help) rest.erase(rest.begin());
  const std::optional<std::string> name = TakeName(commands, &rest);
  const std::vector<std::string> help = {"--help"};
  if (!name.has_value()) return WithoutCommand(wants_help ? help : words, commands, console);
  const auto command =
      std::find_if(commands.begin(), commands.end(), [&](const Command& each) { return each.name == *name; });
  if (command == commands.end()) {
    std::vector<std::string> names;
    for (const Command& each : commands) names.push_back(each.name);
    return console.Usage("", absl::StrCat("unknown command: ", *name, wire::DidYouMean(*name, names)));
  }
  return Run(*command, wants_help ? help : rest, console);
}

}  // namespace tensord::cli
