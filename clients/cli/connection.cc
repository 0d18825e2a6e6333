#include "clients/cli/connection.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace tensord::cli {

std::vector<FlagSpec> ConnectionFlags() {
  return {{.name = "target",
           .placeholder = "ADDRESS",
           .help = "Server, \"unix:/path\" or \"host:port\"; default the user's own socket"},
          {.name = "deadline", .placeholder = "TIME", .help = "Give up after this long, for example 30s or 500ms"},
          {.name = "json", .help = "Print the result as JSON"}};
}

absl::StatusOr<client::ConnectOptions> ParseConnection(const Arguments& arguments) {
  client::ConnectOptions options;
  options.target = arguments.Value("target").value_or("");
  if (std::optional<std::string> deadline = arguments.Value("deadline")) {
    absl::Duration duration;
    if (!absl::ParseDuration(*deadline, &duration) || duration <= absl::ZeroDuration()) {
      return absl::InvalidArgumentError(absl::StrCat("flag needs a time such as 30s: --deadline=", *deadline));
    }
    options.deadline = duration;
    options.connect_timeout = duration;
  }
  return options;
}

}  // namespace tensord::cli
