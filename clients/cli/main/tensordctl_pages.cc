// Prints what shells and man know of tensordctl, from the table that its help is printed from:
//   tensordctl_pages man|bash|zsh|fish
// Made when the project is built; deploy/cmake/install.cmake puts the four into their places.
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "clients/cli/shell/command.h"
#include "tensord/version.h"

namespace tensord::cli {
namespace {

// What stands behind a flag, as its placeholder tells it.
bool TakesValue(const FlagSpec& flag) { return !flag.placeholder.empty(); }
bool MayLackValue(const FlagSpec& flag) { return absl::StartsWith(flag.placeholder, "["); }
bool NamesFile(absl::string_view text) { return absl::StrContains(text, "FILE") || absl::StrContains(text, "GRAPH"); }

// Returns the words of a placeholder that lists all values, such as "row|column"; otherwise none.
std::vector<std::string> ChoicesOf(const FlagSpec& flag) {
  const bool is_list = absl::StrContains(flag.placeholder, '|') &&
                       std::none_of(flag.placeholder.begin(), flag.placeholder.end(), absl::ascii_isupper);
  return is_list ? absl::StrSplit(flag.placeholder, '|') : std::vector<std::string>();
}

std::string ValueForm(const FlagSpec& flag) {
  if (!TakesValue(flag)) return "";
  return MayLackValue(flag) ? absl::StrCat("[=", flag.placeholder.substr(1)) : absl::StrCat("=", flag.placeholder);
}

std::vector<std::string> NamesOf(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) names.push_back(command.name);
  return names;
}

// The manual page, in man(7).

std::string ManText(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}, {"…", "..."}});
  const bool begins_request = absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'");
  return begins_request ? absl::StrCat("\\&", escaped) : escaped;
}

std::string ManFlag(const FlagSpec& flag) {
  const std::string letter = flag.letter == 0 ? "" : absl::StrCat("\\-", std::string(1, flag.letter), "\\fR, \\fB");
  return absl::StrCat(".TP\n\\fB", letter, "\\-\\-", ManText(flag.name), "\\fR", ManText(ValueForm(flag)), "\n",
                      ManText(flag.help), flag.is_repeatable ? " (repeatable)" : "", "\n");
}

bool IsSame(const FlagSpec& a, const FlagSpec& b) {
  return a.name == b.name && a.placeholder == b.placeholder && a.help == b.help && a.letter == b.letter;
}

// Returns the flags that more than half of the commands have: the page describes these once.
std::vector<FlagSpec> SharedFlags(const std::vector<Command>& commands) {
  std::vector<FlagSpec> shared;
  for (const Command& command : commands) {
    for (const FlagSpec& flag : command.flags) {
      const auto is_this = [&flag](const FlagSpec& other) { return IsSame(flag, other); };
      if (std::any_of(shared.begin(), shared.end(), is_this)) continue;
      const auto count = std::count_if(commands.begin(), commands.end(), [&](const Command& other) {
        return std::any_of(other.flags.begin(), other.flags.end(), is_this);
      });
      if (2 * static_cast<size_t>(count) > commands.size()) shared.push_back(flag);
    }
  }
  return shared;
}

void PrintManCommand(const Command& command, const std::vector<FlagSpec>& shared, std::ostream& out) {
  out << ".SS \"tensordctl " << ManText(command.name) << (command.operands.empty() ? "" : " ")
      << ManText(command.operands) << "\"\n"
      << ManText(command.summary) << ".\n";
  if (!command.details.empty()) {
    const absl::string_view details = absl::StripTrailingAsciiWhitespace(command.details);
    out << ".PP\n";
    for (absl::string_view line : absl::StrSplit(details, '\n')) out << ManText(line) << "\n.br\n";
  }
  std::vector<std::string> known;
  for (const FlagSpec& flag : command.flags) {
    const bool is_shared =
        std::any_of(shared.begin(), shared.end(), [&](const FlagSpec& s) { return IsSame(flag, s); });
    if (is_shared) {
      known.push_back(ManText(absl::StrCat("--", flag.name)));
    } else {
      out << ManFlag(flag);
    }
  }
  if (!known.empty()) out << ".PP\nAlso: " << absl::StrJoin(known, ", ") << ".\n";
}

void PrintMan(const std::vector<Command>& commands, std::ostream& out) {
  const std::vector<FlagSpec> shared = SharedFlags(commands);
  out << ".TH TENSORDCTL 1 \"\" \"tensord " << client::Version() << "\"\n"
      << ".SH NAME\ntensordctl \\- evaluates tensor graphs on a tensord server\n"
      << ".SH SYNOPSIS\n.B tensordctl\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n"
      << ".SH COMMANDS\n";
  for (const Command& command : commands) PrintManCommand(command, shared, out);
  out << ".SH FLAGS IN PLACE OF A COMMAND\n";
  for (const FlagSpec& flag : FlagsWithoutCommand()) out << ManFlag(flag);
  out << ".SH FLAGS OF MOST COMMANDS\n";
  for (const FlagSpec& flag : shared) out << ManFlag(flag);
  out << ".SH EXIT STATUS\n0 success, 1 refused or failed, 2 wrong command line.\n"
      << ".SH SEE ALSO\n.BR tensord (8)\n";
}

// Completion in bash. It splits words at "=" too, so that a value is a word of its own.

std::string BashQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

void PrintBashFlags(const Command& command, std::ostream& out) {
  std::vector<std::string> words;
  std::string values;
  for (const FlagSpec& flag : command.flags) {
    words.push_back(absl::StrCat("--", flag.name, TakesValue(flag) && !MayLackValue(flag) ? "=" : ""));
    if (!TakesValue(flag)) continue;
    const std::vector<std::string> choices = ChoicesOf(flag);
    const std::string letter = flag.letter == 0 ? "" : absl::StrCat("|-", std::string(1, flag.letter));
    const std::string kind =
        NamesFile(flag.placeholder) ? "files" : absl::StrCat("words:", absl::StrJoin(choices, " "));
    absl::StrAppend(&values, "        --", flag.name, letter, ") value=", BashQuoted(kind), " ;;\n");
  }
  out << "    " << command.name << ")\n      flags=" << BashQuoted(absl::StrJoin(words, " "))
      << "\n      operands=" << (NamesFile(command.operands) ? "files" : "words:") << "\n";
  if (!values.empty()) out << "      case $flag in\n" << values << "      esac\n";
  out << "      ;;\n";
}

std::string BashFlagsWithoutCommand() {
  std::vector<std::string> words;
  for (const FlagSpec& flag : FlagsWithoutCommand()) words.push_back(absl::StrCat("--", flag.name));
  return absl::StrJoin(words, " ");
}

void PrintBash(const std::vector<Command>& commands, std::ostream& out) {
  out << "# bash completion for tensordctl\n"
         "_tensordctl() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} flag='' value='' command='' flags='' operands='words:' i\n"
         "  local commands="
      << BashQuoted(absl::StrJoin(NamesOf(commands), " "))
      << "\n"
         "  COMPREPLY=()\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    if [[ \" $commands \" == *\" ${COMP_WORDS[i]} \"* ]]; then command=${COMP_WORDS[i]}; break; fi\n"
         "  done\n"
         "  # The flag whose value the word may be.\n"
         "  flag=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  if [[ $word == = ]]; then word=; elif [[ $flag == = ]]; then flag=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
         "  case $command in\n"
         "    '') operands=\"words:$commands help\" flags="
      << BashQuoted(BashFlagsWithoutCommand()) << " ;;\n";
  for (const Command& command : commands) PrintBashFlags(command, out);
  out << "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$flags\" -- \"$word\")\n"
         "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
         "  elif [[ ${value:=$operands} == files ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
         "    compopt -o filenames 2>/dev/null\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"${value#words:}\" -- \"$word\")\n"
         "  fi\n"
         "  return 0\n"
         "}\n"
         "complete -F _tensordctl tensordctl\n";
}

// Completion in zsh.

std::string ZshText(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"'", "'\\''"}});
}

std::string ZshValue(const FlagSpec& flag) {
  if (!TakesValue(flag)) return "";
  const std::vector<std::string> choices = ChoicesOf(flag);
  const std::string action =
      NamesFile(flag.placeholder) ? "_files" : absl::StrCat("(", absl::StrJoin(choices, " "), ")");
  const std::string name = absl::StrReplaceAll(flag.placeholder, {{"[", ""}, {"]", ""}});
  return absl::StrCat(MayLackValue(flag) ? "::" : ":", ZshText(name), ":", action);
}

void PrintZshFlags(const Command& command, std::ostream& out) {
  out << "    " << command.name << ")\n      _arguments";
  for (const FlagSpec& flag : command.flags) {
    const std::string form = !TakesValue(flag) ? "" : MayLackValue(flag) ? "=-" : "=";
    const std::string rest = absl::StrCat("[", ZshText(flag.help), "]", ZshValue(flag));
    const std::string repeated = flag.is_repeatable ? "*" : "";
    out << " \\\n        '" << repeated << "--" << flag.name << form << rest << "'";
    if (flag.letter != 0) {
      out << " \\\n        '" << repeated << "-" << std::string(1, flag.letter) << (TakesValue(flag) ? "+" : "") << rest
          << "'";
    }
  }
  if (!command.operands.empty()) {
    const char* const action = NamesFile(command.operands) ? "_files" : " ";
    out << " \\\n        '*:" << ZshText(command.operands) << ":" << action << "'";
  }
  out << "\n      ;;\n";
}

void PrintZsh(const std::vector<Command>& commands, std::ostream& out) {
  out << "#compdef tensordctl\n"
         "_tensordctl() {\n"
         "  local -a commands\n"
         "  commands=(\n";
  for (const Command& command : commands) {
    out << "    '" << ZshText(command.name) << ":" << ZshText(command.summary) << "'\n";
  }
  out << "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    _arguments";
  for (const FlagSpec& flag : FlagsWithoutCommand()) out << " '--" << flag.name << "[" << ZshText(flag.help) << "]'";
  out << "\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $command in\n";
  for (const Command& command : commands) PrintZshFlags(command, out);
  out << "  esac\n"
         "}\n"
         // Loaded by compinit at the first use, or sourced.
         "if [[ $funcstack[1] == _tensordctl ]]; then _tensordctl \"$@\"; else compdef _tensordctl tensordctl; fi\n";
}

// Completion in fish.

std::string FishQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishValue(const FlagSpec& flag) {
  if (!TakesValue(flag)) return "";
  if (NamesFile(flag.placeholder)) return MayLackValue(flag) ? " -F" : " -r -F";
  return absl::StrCat(" -x -a ", FishQuoted(absl::StrJoin(ChoicesOf(flag), " ")));
}

void PrintFish(const std::vector<Command>& commands, std::ostream& out) {
  const std::string names = absl::StrJoin(NamesOf(commands), " ");
  out << "complete -c tensordctl -f\n";
  for (const Command& command : commands) {
    out << "complete -c tensordctl -n " << FishQuoted(absl::StrCat("not __fish_seen_subcommand_from ", names)) << " -a "
        << command.name << " -d " << FishQuoted(command.summary) << "\n";
  }
  for (const FlagSpec& flag : FlagsWithoutCommand()) {
    out << "complete -c tensordctl -n " << FishQuoted(absl::StrCat("not __fish_seen_subcommand_from ", names)) << " -l "
        << flag.name << " -d " << FishQuoted(flag.help) << "\n";
  }
  for (const Command& command : commands) {
    const std::string condition = FishQuoted(absl::StrCat("__fish_seen_subcommand_from ", command.name));
    if (NamesFile(command.operands)) out << "complete -c tensordctl -n " << condition << " -F\n";
    for (const FlagSpec& flag : command.flags) {
      out << "complete -c tensordctl -n " << condition << " -l " << flag.name;
      if (flag.letter != 0) out << " -s " << flag.letter;
      out << FishValue(flag) << " -d " << FishQuoted(flag.help) << "\n";
    }
  }
}

int Print(absl::string_view kind) {
  const std::vector<Command> commands = AllCommands();
  if (kind == "man") {
    PrintMan(commands, std::cout);
  } else if (kind == "bash") {
    PrintBash(commands, std::cout);
  } else if (kind == "zsh") {
    PrintZsh(commands, std::cout);
  } else if (kind == "fish") {
    PrintFish(commands, std::cout);
  } else {
    std::cerr << "usage: tensordctl_pages man|bash|zsh|fish\n";
    return kExitUsage;
  }
  std::cout.flush();
  return std::cout ? kExitOk : kExitFailed;
}

}  // namespace
}  // namespace tensord::cli

int main(int argc, char** argv) { return tensord::cli::Print(argc == 2 ? argv[1] : ""); }
