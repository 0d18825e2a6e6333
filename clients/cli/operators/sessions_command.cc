#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/operators/admin_connection.h"
#include "clients/cli/shell/command.h"
#include "clients/cli/shell/table.h"

namespace tensord::cli {
namespace {

std::string SessionsText(const v1::ListSessionsResponse& sessions) {
  Table table({"SESSION", "TENANT", ">TENSORS", ">BYTES", ">LEASE LEFT"});
  for (const v1::SessionEntry& entry : sessions.sessions()) {
    table.Add({entry.session().id(), entry.tenant(), absl::StrCat(entry.tensor_count()),
               absl::StrCat(entry.byte_count()), absl::StrCat(entry.lease_left().seconds(), "s")});
  }
  return table.Text();
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
    console.out() << SessionsText(*sessions);
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
          .details = "Tensors are those that stay on the server. A session ends when nothing is left of its lease.\n",
          .flags = std::move(flags),
          .run = &Sessions};
}

}  // namespace tensord::cli
