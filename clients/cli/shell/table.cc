#include "clients/cli/shell/table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/shell/printable_text.h"

namespace tensord::cli {

Table::Table(std::vector<std::string> headings) {
  for (std::string& heading : headings) {
    is_right_.push_back(heading.front() == '>');
    if (is_right_.back()) heading.erase(0, 1);
  }
  lines_.push_back(std::move(headings));
}

void Table::Add(std::vector<std::string> cells) {
  cells.resize(is_right_.size());
  for (std::string& cell : cells) {
    cell = cell.empty() ? "-" : PrintableLine(cell);
  }
  lines_.push_back(std::move(cells));
}

std::string Table::Text() const {
  std::vector<size_t> widths(is_right_.size());
  for (const std::vector<std::string>& line : lines_) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& line : lines_) {
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - line[i].size(), ' ');
      if (i > 0) absl::StrAppend(&text, "  ");
      if (is_right_[i]) absl::StrAppend(&text, blanks);
      absl::StrAppend(&text, line[i]);
      if (!is_right_[i] && i + 1 < line.size()) absl::StrAppend(&text, blanks);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace tensord::cli
