#ifndef TENSORD_CLIENTS_CLI_SHELL_LINE_WRAP_H_
#define TENSORD_CLIENTS_CLI_SHELL_LINE_WRAP_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::cli {

// Returns the columns that a text of UTF-8 takes, one for each character.
size_t ColumnsOf(absl::string_view text);

// Returns a line, without an end, as lines of at most `columns`, broken at blanks. All but the first begin with
// `indent` blanks. A word that is longer stays whole.
std::string WrapLine(absl::string_view line, size_t columns, size_t indent);

// Returns a text with all of its lines wrapped so.
std::string WrapLines(absl::string_view text, size_t columns, size_t indent);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_LINE_WRAP_H_
