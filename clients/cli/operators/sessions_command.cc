#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"

namespace tensord::cli {
namespace {

std::string SessionLine(const v1::SessionEntry& entry) {
  return absl::StrFormat("%s %-16s %8d tensors %14d bytes  lease %d s\n", entry.session().id(), entry.tenant(),
                         entry.tensor_count(), entry.byte_count(), entry.lease_left().seconds());
}

int Close(client::AdminClient& admin, const std::vector<std::string>& sessions, Console& console) {
  for (const std::string& session : sessions) {
    const absl::Status closed = admin.CloseSession(session);
    if (!closed.ok()) return console.Fail(closed);
    if (!console.is_json()) console.out() << "closed " << session << "\n";
  }
  return console.is_json() ? console.PrintJson(v1::CloseSessionResponse()) : kExitOk;
}

int Sessions(const Arguments& arguments, Console& console) {
  const std::vector<std::string> closed = arguments.Values("close");
  return WithAdmin("sessions", arguments, console, [&](client::AdminClient& admin) {
    if (!closed.empty()) return Close(admin, closed, console);
    absl::StatusOr<v1::ListSessionsResponse> sessions = admin.ListSessions();
    if (!sessions.ok()) return console.Fail(sessions.status());
    if (console.is_json()) return console.PrintJson(*sessions);
    for (const v1::SessionEntry& entry : sessions->sessions()) console.out() << SessionLine(entry);
    return kExitOk;
  });
}

}  // namespace

Command SessionsCommand() {
  std::vector<FlagSpec> flags = {{.name = "close",
                                  .placeholder = "SESSION",
                                  .help = "End the session of that id instead of listing all",
                                  .is_repeatable = true}};
  for (FlagSpec& flag : AdminFlags()) flags.push_back(std::move(flag));
  return {.name = "sessions",
          .operands = "",
          .summary = "List the sessions of the server's clients, or end one",
          .details = "One line each: id, tenant, resident tensors, their bytes, what is left of the lease.\n",
          .flags = std::move(flags),
          .run = &Sessions};
}

}  // namespace tensord::cli
