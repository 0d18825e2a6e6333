#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "clients/cli/admin_connection.h"
#include "clients/cli/command.h"

namespace tensord::cli {
namespace {

int Drain(const Arguments& arguments, Console& console) {
  if (!arguments.positional().empty()) {
    return console.Usage("drain", absl::StrCat("unexpected argument: ", arguments.positional().front()));
  }
  std::optional<absl::Duration> timeout;
  if (const std::optional<std::string> text = arguments.Value("timeout")) {
    timeout.emplace();
    if (!absl::ParseDuration(*text, &*timeout) || *timeout < absl::ZeroDuration()) {
      return console.Usage("drain", absl::StrCat("flag needs a time such as 30s: --timeout=", *text));
    }
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
