#include "clients/cli/shell/help.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "clients/cli/shell/line_wrap.h"

namespace tensord::cli {
namespace {

constexpr size_t kCommandColumn = 18;
constexpr size_t kFlagColumn = 28;
// Less than this beside a column of names is not worth reading.
constexpr size_t kLeastText = 28;
constexpr size_t kNarrowIndent = 6;
// Longer lines are hard to read.
constexpr size_t kMostColumns = 100;

// Appends a name and its meaning beside it, or below it if the name is long or the screen narrow.
void AppendEntry(absl::string_view name, absl::string_view meaning, size_t column, size_t columns, std::string* text) {
  const size_t indent = columns < column + kLeastText ? kNarrowIndent : column;
  std::string line = absl::StrCat("  ", name);
  if (ColumnsOf(line) + 1 > indent) {
    absl::StrAppend(text, std::exchange(line, ""), "\n");
  }
  absl::StrAppend(&line, std::string(indent - ColumnsOf(line), ' '), meaning);
  absl::StrAppend(text, WrapLine(line, columns, indent), "\n");
}

void AppendFlags(const std::vector<FlagSpec>& flags, size_t columns, std::string* text) {
  for (const FlagSpec& flag : flags) {
    AppendEntry(FlagForm(flag), absl::StrCat(flag.help, flag.is_repeatable ? " (repeatable)" : ""), kFlagColumn,
                columns, text);
  }
}

}  // namespace

std::string FlagForm(const FlagSpec& flag) {
  std::string form = flag.letter == 0 ? "" : absl::StrCat("-", std::string(1, flag.letter), ", ");
  absl::StrAppend(&form, "--", flag.name);
  if (flag.placeholder.empty()) return form;
  // "[FILE]" may be left out, with its "=".
  if (flag.placeholder.front() == '[') return absl::StrCat(form, "[=", flag.placeholder.substr(1));
  return absl::StrCat(form, "=", flag.placeholder);
}

std::string GeneralHelp(const std::vector<Command>& commands, size_t columns) {
  columns = std::min(columns, kMostColumns);
  std::string text =
      "tensordctl: evaluates tensor graphs on a tensord server.\n\n"
      "Usage: tensordctl COMMAND [ARGUMENT…]\n\nCommands:\n";
  for (const Command& command : commands) AppendEntry(command.name, command.summary, kCommandColumn, columns, &text);
  absl::StrAppend(&text, "\nFlags:\n");
  AppendFlags(FlagsWithoutCommand(), columns, &text);
  const absl::string_view end =
      "\n\"tensordctl COMMAND --help\" explains a command.\n"
      "Exit status: 0 success, 1 refused or failed, 2 wrong command line.\n";
  return absl::StrCat(text, WrapLines(end, columns, 0));
}

std::string CommandHelp(const Command& command, size_t columns) {
  columns = std::min(columns, kMostColumns);
  std::string text =
      absl::StrCat(command.summary, "\n\nUsage: tensordctl ", command.name, command.operands.empty() ? "" : " ",
                   command.operands, " [FLAG…]\n\n", command.details);
  text = WrapLines(text, columns, 0);
  absl::StrAppend(&text, command.details.empty() ? "" : "\n", "Flags:\n");
  AppendFlags(command.flags, columns, &text);
  return text;
}

}  // namespace tensord::cli
