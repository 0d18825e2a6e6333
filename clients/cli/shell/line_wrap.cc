#include "clients/cli/shell/line_wrap.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tensord::cli {
namespace {

bool BeginsCharacter(char byte) { return (byte & 0xC0) != 0x80; }

// Returns the place of the last blank that lets the line fit, or of the first one behind a word that is too long. The
// line's size if it is not to be broken.
size_t BreakOf(absl::string_view line, size_t columns) {
  size_t column = 0, place = line.size();
  bool has_word = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ' && has_word && column <= columns) place = i;
    if (line[i] == ' ' && has_word && column > columns) return std::min(place, i);
    if (line[i] != ' ') has_word = true;
    if (BeginsCharacter(line[i])) ++column;
  }
  return column <= columns ? line.size() : place;
}

}  // namespace

size_t ColumnsOf(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

std::string WrapLine(absl::string_view line, size_t columns, size_t indent) {
  std::string text;
  size_t room = columns;
  while (true) {
    const size_t end = BreakOf(line, room);
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line.substr(0, end)));
    line = absl::StripLeadingAsciiWhitespace(line.substr(end));
    if (line.empty()) return text;
    absl::StrAppend(&text, "\n", std::string(indent, ' '));
    room = columns > indent ? columns - indent : 1;
  }
}

std::string WrapLines(absl::string_view text, size_t columns, size_t indent) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) lines.push_back(WrapLine(line, columns, indent));
  return absl::StrJoin(lines, "\n");
}

}  // namespace tensord::cli
