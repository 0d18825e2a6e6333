#ifndef TENSORD_CLIENTS_CLI_SHELL_SHORT_TEXT_H_
#define TENSORD_CLIENTS_CLI_SHELL_SHORT_TEXT_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace tensord::cli {

// "1.23ms", with three digits.
std::string ShortTime(absl::Duration duration);
// "1.23k", with three digits.
std::string ShortCount(double count);
// "1.23 MiB", with three digits.
std::string ShortBytes(double bytes);
// "a, b, c and 7 more", with at most ten names.
std::string ListText(absl::Span<const std::string> names);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_SHELL_SHORT_TEXT_H_
