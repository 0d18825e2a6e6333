#include <string>

#include "absl/status/status.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

int SetLogLevel(const Arguments& arguments, Console& console) {
  if (arguments.positional().size() != 1)
    return console.Usage("log-level", "one level: debug, info, warning, error, off");
  const std::string level = arguments.positional().front();
  return WithAdmin("log-level", arguments, console, [&](client::AdminClient& admin) {
    const absl::Status set = admin.SetLogLevel(level);
    if (!set.ok()) return console.Fail(set);
    if (console.is_json()) return console.PrintJson(v1::SetLogLevelResponse());
    console.out() << "log level " << level << "\n";
    return kExitOk;
  });
}

}  // namespace

Command LogLevelCommand() {
  return {.name = "log-level",
          .operands = "LEVEL",
          .summary = "Set how much the server logs, until it stops",
          .details = "LEVEL is debug, info, warning, error or off.\n",
          .flags = AdminFlags(),
          .run = &SetLogLevel};
}

}  // namespace tensord::cli
