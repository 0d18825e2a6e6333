#include <string>

#include "absl/strings/str_format.h"
#include "clients/cli/admin_connection.h"
#include "clients/cli/command.h"

namespace tensord::cli {
namespace {

std::string SessionLine(const v1::SessionEntry& entry) {
  return absl::StrFormat("%s %-16s %8d tensors %14d bytes  lease %d s\n", entry.session().id(), entry.tenant(),
                         entry.tensor_count(), entry.byte_count(), entry.lease_left().seconds());
}

int ListSessions(const Arguments& arguments, Console& console) {
  return WithAdmin("sessions", arguments, console, [&console](client::AdminClient& admin) {
    absl::StatusOr<v1::ListSessionsResponse> sessions = admin.ListSessions();
    if (!sessions.ok()) return console.Fail(sessions.status());
    if (console.is_json()) return console.PrintJson(*sessions);
    for (const v1::SessionEntry& entry : sessions->sessions()) console.out() << SessionLine(entry);
    return kExitOk;
  });
}

}  // namespace

Command SessionsCommand() {
  return {.name = "sessions",
          .operands = "",
          .summary = "List the sessions of the server's clients",
          .details = "One line each: id, tenant, resident tensors, their bytes, what is left of the lease.\n",
          .flags = AdminFlags(),
          .run = &ListSessions};
}

}  // namespace tensord::cli
