#ifndef TENSORD_CLIENTS_CLI_SHELL_TABLE_H_
#define TENSORD_CLIENTS_CLI_SHELL_TABLE_H_

#include <string>
#include <vector>

namespace tensord::cli {

// A list for people: a line of headings, and a line for each entry, in columns that are as wide as their widest cell. A
// value type.
class Table {
 public:
  // Headings in capitals, for example "BYTES". A column whose heading begins with ">" is aligned to the right.
  explicit Table(std::vector<std::string> headings);

  // Adds a line with a cell for each heading. An empty cell is shown as "-", so that each line has as many words.
  void Add(std::vector<std::string> cells);
  // Returns the headings and the lines; the last column has no blanks behind it.
  std::string Text() const;

 private:
  std::vector<bool> is_right_;
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_TABLE_H_
