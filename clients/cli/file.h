#ifndef TENSORD_CLIENTS_CLI_FILE_H_
#define TENSORD_CLIENTS_CLI_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::cli {

// A whole file; "-" is standard input. The status names the file and what the system says.
absl::StatusOr<std::string> ReadFile(const std::string& path);
// Replaces a file whole: nobody sees half of it, and a failure leaves an old one as it was. "-" is standard output;
// what is no regular file (a pipe, a device) is written in place.
absl::Status WriteFile(const std::string& path, absl::string_view contents);

}  // namespace tensord::cli

#endif  // TENSORD_CLIENTS_CLI_FILE_H_
