#ifndef TENSORD_CLIENTS_CLI_SHELL_PRINTABLE_TEXT_H_
#define TENSORD_CLIENTS_CLI_SHELL_PRINTABLE_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tensord::cli {

// Returns text of others, a server's for example, so that a terminal shows it and obeys nothing in it: control
// characters of ASCII and of UTF-8 (U+0080 to U+009F), the latter also as single bytes, and marks that turn the
// direction of what follows or end a line are "\x1b" and the like, byte by byte.
std::string PrintableLine(absl::string_view text);
// The same with ends of lines and tabs as they are.
std::string PrintableText(absl::string_view text);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_PRINTABLE_TEXT_H_
