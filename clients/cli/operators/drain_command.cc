#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

int Drain(const Arguments& arguments, Console& console) {
  std::optional<absl::Duration> timeout;
  if (const std::optional<std::string> value = arguments.Value("timeout")) {
    const absl::StatusOr<absl::Duration> parsed = ParseTime("timeout", *value, absl::ZeroDuration());
    if (!parsed.ok()) return console.Usage("drain", parsed.status().message());
    timeout = *parsed;
  }
  return WithAdmin("drain", arguments, console, [&](client::AdminClient& admin) {
    const absl::Status begun = admin.Drain(timeout);
    if (!begun.ok()) return console.Fail(begun);
    if (console.is_json()) return console.PrintJson(v1::DrainResponse());
    console.out() << "draining\n";
    return kExitOk;
  });
}

}  // namespace

Command DrainCommand() {
  std::vector<FlagSpec> flags = {{.name = "timeout",
                                  .placeholder = "TIME",
                                  .help = "Cancel what is not done then; default the server's drain.timeout_ms"}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {.name = "drain",
          .operands = "",
          .summary = "Let the server end what it has, and stop",
          .details = "As SIGTERM does. Returns at once.\n",
          .flags = std::move(flags),
          .run = &Drain};
}

}  // namespace tensord::cli
